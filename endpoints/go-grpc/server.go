package main

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/heron"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// description is what would be generated from contract/heron.proto.
var description = grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: method, Handler: squareRoot}},
}

type server struct {
	grpc       *grpc.Server
	port       int
	answered   atomic.Uint64
	accounts   transport.Accounts
	configured contract.Configured
}

func newServer(spec *contract.ServerSpec) (*server, error) {
	given, err := settings(&spec.Common)
	if err != nil {
		return nil, err
	}
	if spec.DocumentRoot != "" {
		return nil, contract.Refuse("spec: `document_root`: gRPC has no documents")
	}
	options := []grpc.ServerOption{}
	if given.stream != 0 {
		options = append(options, grpc.StaticStreamWindowSize(given.stream))
	}
	if given.connection != 0 {
		options = append(options, grpc.StaticConnWindowSize(given.connection))
	}
	if spec.TLS != nil {
		if spec.TLS.EarlyData {
			return nil, contract.Refuse("tls: `early_data`: Go's TLS has no 0-RTT over TCP")
		}
		var config *tls.Config
		if config, err = tlsside.Server(spec); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	sockets, err := socket.TCPOfServers(&spec.Transport)
	if err != nil {
		return nil, err
	}
	s := &server{grpc: grpc.NewServer(options...)}
	if spec.Wants("heron") {
		s.grpc.RegisterService(&description, s)
	}
	listener, err := sockets.Listen(spec.Address, &s.accounts)
	if err != nil {
		return nil, err
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	if s.configured, err = sockets.ActiveSettings(listener); err != nil {
		return nil, err
	}
	s.configured.Add(given.configured())
	go func() {
		// It may begin after Stop.
		if err := s.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			contract.Finish(contract.Failed(contract.Other, "accepting connections: %v", err))
		}
	}()
	return s, nil
}

// squareRoot is the method.
func squareRoot(s any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	number := new(wrapperspb.DoubleValue)
	if err := read(number); err != nil {
		return nil, err
	}
	s.(*server).answered.Add(1)
	root := heron.Root(number.Value)
	if math.IsNaN(root) {
		return nil, status.Errorf(codes.InvalidArgument, "%v has no square root", number.Value)
	}
	return wrapperspb.Double(root), nil
}

func (s *server) Port() int                       { return s.port }
func (s *server) Configured() contract.Configured { return s.configured }
func (s *server) Answered() uint64                { return s.answered.Load() }
func (s *server) Accounts() *transport.Accounts   { return &s.accounts }
func (s *server) Stop()                           { s.grpc.Stop() }
