package socket

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/transport"
)

// Listener accepts connections with the options of a spec, and keeps their accounts.
type Listener struct {
	*net.TCPListener
	options  TCP
	accounts *transport.Accounts
}

// Listen binds a server's address. An accepted connection inherits the options of the listening socket, except
// TCP_NODELAY, which Go turns on when it accepts.
func (o TCP) Listen(address netip.AddrPort, accounts *transport.Accounts) (*Listener, error) {
	config := net.ListenConfig{Control: o.control}
	config.SetMultipathTCP(false)
	listener, err := config.Listen(context.Background(), "tcp", address.String())
	if err != nil {
		return nil, unbound(address, err)
	}
	tcp := listener.(*net.TCPListener)
	return &Listener{tcp, o, accounts}, setNoDelay(tcp, o.noDelay)
}

func unbound(address netip.AddrPort, err error) error {
	if unsupported, is := errors.AsType[*contract.Unsupported](err); is {
		return unsupported
	}
	return contract.Failed(contract.Other, "binding %s: %v", address, err)
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	connection, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	if !l.options.noDelay {
		if err := connection.SetNoDelay(false); err != nil {
			_ = connection.Close()
			return nil, err
		}
	}
	return Meter(connection, l.accounts), nil
}

// Metered is a connection with an account.
type Metered struct {
	*net.TCPConn
	account *transport.Account
	reset   atomic.Bool
}

// Meter opens the account of a connection.
func Meter(connection *net.TCPConn, accounts *transport.Accounts) *Metered {
	account := accounts.Enter(func() transport.Reading { return ReadTCP(connection) })
	return &Metered{TCPConn: connection, account: account}
}

// Read notes a reset, which HTTP/2 takes for the end of the stream.
func (m *Metered) Read(p []byte) (int, error) {
	n, err := m.TCPConn.Read(p)
	return n, m.note(err)
}

// Write notes it too: the kernel reports a reset once, to the next read or write.
func (m *Metered) Write(p []byte) (int, error) {
	n, err := m.TCPConn.Write(p)
	return n, m.note(err)
}

func (m *Metered) note(err error) error {
	if err != nil && (errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)) {
		m.reset.Store(true)
	}
	return err
}

// WasReset says whether the peer has reset the connection.
func (m *Metered) WasReset() bool { return m.reset.Load() }

// Close reads the connection for the last time.
func (m *Metered) Close() error {
	m.account.Leave()
	return m.TCPConn.Close()
}
