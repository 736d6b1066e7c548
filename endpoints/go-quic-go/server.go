package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/site"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

const (
	// idle ends a connection that nothing arrives on, unless the client wants that earlier.
	idle = 10 * time.Minute
	// streams that a client may have open at a time: more than any load has, so that no request waits for it.
	streams = 100_000
)

type server struct {
	*site.Site
	udp        *socket.UDP
	quic       *quic.Transport
	listener   *quic.EarlyListener
	http3      *http3.Server // nil where the protocol is bare QUIC
	qlog       *qlog
	accounts   transport.Accounts
	configured contract.Configured
	stopped    context.Context
	stop       context.CancelFunc
	serving    sync.WaitGroup
}

func newServer(spec *contract.ServerSpec) (*server, error) {
	settings, err := newSettings(&spec.Transport, idle)
	if err != nil {
		return nil, err
	}
	s := new(server)
	s.stopped, s.stop = context.WithCancel(context.Background())
	if s.Site, err = site.New(spec); err != nil {
		return nil, err
	}
	config, err := tlsside.Server(spec)
	if err != nil {
		return nil, err
	}
	if spec.HTTP() {
		config = http3.ConfigureTLSConfig(config)
		s.http3 = &http3.Server{Handler: s.Site}
	}
	settings.quic.Allow0RTT = spec.TLS.EarlyData
	settings.quic.MaxIncomingStreams = streams
	if spec.QlogDir != "" {
		s.qlog = &qlog{folder: spec.QlogDir}
		settings.quic.Tracer = s.qlog.trace
	}
	if s.udp, err = socket.ListenUDP(spec.Address); err != nil {
		return nil, err
	}
	if s.quic, err = settings.transport(s.udp); err != nil {
		return nil, err
	}
	if s.listener, err = s.quic.ListenEarly(config, &settings.quic); err != nil {
		return nil, contract.Failed(contract.Other, "listening on %s: %v", spec.Address, err)
	}
	s.configured = settings.configured(s.udp)
	s.serving.Go(s.serve)
	return s, nil
}

func (s *server) serve() {
	if s.http3 != nil {
		_ = s.http3.ServeListener(metered{s.listener, s})
		return
	}
	for {
		connection, err := metered{s.listener, s}.Accept(s.stopped)
		if err != nil {
			return
		}
		s.serving.Go(func() { s.serveRaw(connection) })
	}
}

// serveRaw serves a connection to its end; what fails on it is the client's to report.
func (s *server) serveRaw(connection *quic.Conn) {
	for {
		stream, err := connection.AcceptStream(s.stopped)
		if err != nil {
			_ = connection.CloseWithError(0, "")
			return
		}
		go func() {
			if s.ServeRaw(stream) {
				_ = stream.Close()
				return
			}
			stream.CancelRead(0)
			stream.CancelWrite(0)
		}()
	}
}

// metered opens the account of every connection that is accepted.
type metered struct {
	*quic.EarlyListener
	server *server
}

func (m metered) Accept(ctx context.Context) (*quic.Conn, error) {
	connection, err := m.EarlyListener.Accept(ctx)
	if err == nil {
		account := m.server.accounts.Enter(func() reading { return readingOf(connection) })
		context.AfterFunc(connection.Context(), account.Leave)
	}
	return connection, err
}

func (s *server) Port() int                       { return s.udp.LocalAddr().(*net.UDPAddr).Port }
func (s *server) Configured() contract.Configured { return s.configured }
func (s *server) Accounts() *transport.Accounts   { return &s.accounts }

func (s *server) Stop() {
	s.stop()
	if s.http3 != nil {
		_ = s.http3.Close()
	}
	s.serving.Wait()
	_ = s.listener.Close()
	_ = s.quic.Close()
	if s.qlog != nil {
		s.qlog.wait()
	}
}
