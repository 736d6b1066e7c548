package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/tlsside"
)

// handshaker is the client's TLS of one connection, as grpc-go wants it. grpc-go's own would not tell how it went.
type handshaker struct{ c *connection }

func (h handshaker) ClientHandshake(ctx context.Context, _ string, tcp net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := h.c
	var config *tls.Config
	config, c.ticket = c.driver.tls.Connection(nil)
	secure := tls.Client(tcp, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, nil, c.fails(err)
	}
	c.ready = clock.Now()
	state := secure.ConnectionState()
	if failure := c.driver.tls.Check(&state); failure != nil {
		_ = secure.Close()
		return nil, nil, c.fails(failure)
	}
	c.handshake = tlsside.Handshake(&state)
	c.driver.see(c.tcp.TCPConn, &state)
	security := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
	return secure, credentials.TLSInfo{State: state, CommonAuthInfo: security}, nil
}

func (h handshaker) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a client's TLS serves nobody")
}

func (h handshaker) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.3"}
}

func (h handshaker) Clone() credentials.TransportCredentials { return h }

func (h handshaker) OverrideServerName(string) error {
	return errors.New("the name of the server is that of the spec")
}
