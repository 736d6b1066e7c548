package main

import (
	"crypto/tls"
	"net"
	"net/http"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/site"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// windowsOfServers is what net/http gives as a server.
var windowsOfServers = windows{1 << 20, 1 << 20}

type server struct {
	*site.Site
	http       http.Server
	port       int
	accounts   transport.Accounts
	configured contract.Configured
}

func newServer(spec *contract.ServerSpec) (*server, error) {
	if err := refuse(&spec.Common); err != nil {
		return nil, err
	}
	if spec.TLS != nil && spec.TLS.EarlyData {
		return nil, contract.Refuse("tls: `early_data`: Go's TLS has no 0-RTT over TCP")
	}
	options, err := socket.TCPOfServers(&spec.Transport)
	if err != nil {
		return nil, err
	}
	s := new(server)
	if s.Site, err = site.New(spec); err != nil {
		return nil, err
	}
	s.http.Handler, s.http.Protocols = s.Site, speaks(spec.Protocol)
	var config *tls.Config
	if spec.TLS != nil {
		if config, err = tlsside.Server(spec); err != nil {
			return nil, err
		}
	}
	s.http.TLSConfig = config
	given := windowsOfServers
	if s.http.HTTP2, given, err = http2(&spec.Transport, windowsOfServers, 0); err != nil {
		return nil, err
	}
	listener, err := options.Listen(spec.Address, &s.accounts)
	if err != nil {
		return nil, err
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	if s.configured, err = options.ActiveSettings(listener); err != nil {
		return nil, err
	}
	if isHTTP2(spec.Protocol) {
		s.configured.Add(given.configured())
	}
	go s.serve(listener, config != nil)
	return s, nil
}

func (s *server) serve(listener net.Listener, secure bool) {
	err := error(nil)
	if secure {
		err = s.http.ServeTLS(listener, "", "")
	} else {
		err = s.http.Serve(listener)
	}
	if err != http.ErrServerClosed {
		contract.Finish(contract.Failed(contract.Other, "accepting connections: %v", err))
	}
}

func (s *server) Port() int                       { return s.port }
func (s *server) Configured() contract.Configured { return s.configured }
func (s *server) Accounts() *transport.Accounts   { return &s.accounts }
func (s *server) Stop()                           { _ = s.http.Close() }
