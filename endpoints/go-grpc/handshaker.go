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

// handshaker is the client's TLS of a channel's connections, as grpc-go wants it. grpc-go's own would not tell how it went.
type handshaker struct {
	side *tlsside.Client
	// of gets the results.
	of interface {
		shaken(tcp net.Conn, ready clock.Moment, state *tls.ConnectionState, ticket *tlsside.Arrival)
		// fails gives the error back.
		fails(error) error
	}
}

func (h handshaker) ClientHandshake(ctx context.Context, _ string, tcp net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, ticket := h.side.Connection(nil)
	secure := tls.Client(tcp, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, nil, h.of.fails(err)
	}
	ready := clock.Now()
	state := secure.ConnectionState()
	if failure := h.side.Check(&state); failure != nil {
		_ = secure.Close()
		return nil, nil, h.of.fails(failure)
	}
	h.of.shaken(tcp, ready, &state, ticket)
	security := credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}
	return secure, credentials.TLSInfo{State: state, CommonAuthInfo: security}, nil
}

func (h handshaker) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("a client's TLS accepts no connections")
}

func (h handshaker) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls", SecurityVersion: "1.3"}
}

func (h handshaker) Clone() credentials.TransportCredentials { return h }

func (h handshaker) OverrideServerName(string) error {
	return errors.New("the name of the server is that of the spec")
}
