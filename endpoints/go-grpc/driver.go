package main

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// driver opens channels of grpc-go, each of which has one connection and never another.
type driver struct {
	spec     *contract.ClientSpec
	call     *call
	sockets  socket.TCP
	tls      *tlsside.Client
	options  []grpc.DialOption
	accounts transport.Accounts

	lock sync.Mutex
	// What is in force; the sockets and what was negotiated are those of the first connection.
	configured contract.Configured
	seen       bool
}

func newDriver(spec *contract.ClientSpec) (*driver, error) {
	given, err := settings(&spec.Common)
	if err != nil {
		return nil, err
	}
	if spec.Resumption == "zero_rtt" {
		return nil, contract.Refuse("`resumption` = \"zero_rtt\": Go's TLS has no 0-RTT over TCP")
	}
	d := &driver{spec: spec, configured: given.configured()}
	if d.call, err = newCall(spec); err != nil {
		return nil, err
	}
	if d.sockets, err = socket.TCPOfClients(&spec.Transport); err != nil {
		return nil, err
	}
	if spec.TLS != nil {
		if d.tls, err = tlsside.NewClient(spec); err != nil {
			return nil, err
		}
	}
	d.options = []grpc.DialOption{
		grpc.WithAuthority(spec.ServerName),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
	}
	if given.stream != 0 {
		d.options = append(d.options, grpc.WithStaticStreamWindowSize(given.stream))
	}
	if given.connection != 0 {
		d.options = append(d.options, grpc.WithStaticConnWindowSize(given.connection))
	}
	return d, nil
}

// Dial opens a channel to the next server, and waits until it has its connection.
func (d *driver) Dial(ctx context.Context) (load.Opened, *contract.Failure) {
	c := &connection{driver: d, server: d.spec.NextServer().String()}
	security := grpc.WithTransportCredentials(insecure.NewCredentials())
	if d.tls != nil {
		security = grpc.WithTransportCredentials(handshaker{c})
	}
	own := []grpc.DialOption{security, grpc.WithContextDialer(c.dial)}
	channel, err := grpc.NewClient("passthrough:///"+c.server, append(own, d.options...)...)
	if err != nil {
		return load.Opened{}, contract.Failed(contract.Other, "making a channel to %s: %v", c.server, err)
	}
	c.channel = channel
	channel.Connect()
	for state := channel.GetState(); state != connectivity.Ready; state = channel.GetState() {
		if state == connectivity.TransientFailure {
			c.Abandon()
			return load.Opened{}, c.unconnected()
		}
		if !channel.WaitForStateChange(ctx, state) {
			c.Abandon()
			return load.Opened{}, contract.Failed(contract.Timeout, "connecting to %s: %v", c.server, ctx.Err())
		}
	}
	opened := load.Opened{Connection: c, Ready: c.ready}
	// With Fast Open nobody sees when the connection comes to be.
	if !d.sockets.FastOpen {
		opened.Connected = c.connected
	}
	return opened, nil
}

// see notes what is in force on the first connection.
func (d *driver) see(tcp *net.TCPConn, state *tls.ConnectionState) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.seen {
		return
	}
	d.seen = true
	if inForce, err := d.sockets.InForce(tcp); err == nil {
		d.configured.Add(inForce)
	}
	if state != nil {
		d.configured.Add(tlsside.Facts(state))
	}
}

func (d *driver) Configured() contract.Configured {
	d.lock.Lock()
	defer d.lock.Unlock()
	return maps.Clone(d.configured)
}

func (d *driver) Tickets() int {
	if d.tls == nil {
		return 0
	}
	return d.tls.Stored()
}

func (d *driver) Accounts() *transport.Accounts { return &d.accounts }
func (d *driver) Close()                        {}
