package socket

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"wirelab/endpoint/contract"
)

// UDP is a socket that is bound or connected.
type UDP struct {
	*net.UDPConn
	connected bool
	// held is closed when packets may leave; nil: they always may.
	held    chan struct{}
	release sync.Once
}

// Hold keeps all packets until Release. Call it before the socket is used.
func (u *UDP) Hold() { u.held = make(chan struct{}) }

// Release lets all packets leave from now on.
func (u *UDP) Release() {
	if u.held != nil {
		u.release.Do(func() { close(u.held) })
	}
}

// ListenUDP binds a server's address.
func ListenUDP(address netip.AddrPort) (*UDP, error) {
	connection, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, unbound(address, err)
	}
	return &UDP{UDPConn: connection}, nil
}

// DialUDP connects to a server's address, so that a client gets the ICMP error of a closed port.
func DialUDP(address netip.AddrPort) (*UDP, error) {
	connection, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	return &UDP{UDPConn: connection, connected: true}, nil
}

// WriteMsgUDP leaves out the address on a connected socket, where Go refuses it.
func (u *UDP) WriteMsgUDP(b, oob []byte, address *net.UDPAddr) (int, int, error) {
	if u.connected {
		address = nil
	}
	if u.held != nil {
		<-u.held
	}
	return u.UDPConn.WriteMsgUDP(b, oob, address)
}

// SetBuffers sets the sizes of the spec, and refuses a size that the kernel does not grant.
func (u *UDP) SetBuffers(t *contract.Transport) error {
	for _, b := range []struct {
		field, limit  string
		wanted        *uint64
		option, force int
	}{
		{"udp_send_buffer", "net.core.wmem_max", t.UDPSendBuffer, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE},
		{"udp_receive_buffer", "net.core.rmem_max", t.UDPReceiveBuffer, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE},
	} {
		if b.wanted == nil {
			continue
		}
		size, err := buffer(u, b.option, b.force, int(min(*b.wanted, 1<<30)))
		if err != nil {
			return contract.Refuse("transport: `%s` = %d: %v", b.field, *b.wanted, err)
		}
		if uint64(size) != *b.wanted {
			return contract.Refuse("transport: `%s` = %d: the kernel gave %d; where that is less, raise its limit with "+
				"`sysctl -w %s=%d` or run with CAP_NET_ADMIN", b.field, *b.wanted, size, b.limit, *b.wanted)
		}
	}
	return nil
}

// Buffers are the active sizes.
func (u *UDP) Buffers() contract.Configured {
	configured := contract.Configured{}
	_ = read(u, func(fd int) error {
		if size, err := bufferSize(fd, unix.SO_SNDBUF); err == nil {
			configured["udp_send_buffer"] = size
		}
		if size, err := bufferSize(fd, unix.SO_RCVBUF); err == nil {
			configured["udp_receive_buffer"] = size
		}
		return nil
	})
	return configured
}

// Segments says whether the kernel can segment packets of the socket (UDP_SEGMENT, Linux 4.18).
func (u *UDP) Segments() bool {
	return read(u, func(fd int) error {
		_, err := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		return err
	}) == nil
}

func buffer(connection syscall.Conn, option, force, wanted int) (size int, err error) {
	failed := read(connection, func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, wanted); err != nil {
			return err
		}
		if size, err = bufferSize(fd, option); err == nil && size < wanted {
			// Beyond the limit only with CAP_NET_ADMIN; without it the first setting stays.
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, wanted)
			size, err = bufferSize(fd, option)
		}
		return err
	})
	return size, failed
}

// bufferSize is without the kernel's doubling for its own bookkeeping (socket(7)).
func bufferSize(fd, option int) (int, error) {
	doubled, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option)
	return doubled / 2, os.NewSyscallError("getsockopt", err)
}
