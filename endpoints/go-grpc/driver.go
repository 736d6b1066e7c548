package main

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// driver opens channels of grpc-go: each has one connection and never another, unless a control plane names the servers.
type driver struct {
	spec     *contract.ClientSpec
	call     *call
	sockets  socket.TCP
	tls      *tlsside.Client
	options  []grpc.DialOption
	accounts transport.Accounts

	lock sync.Mutex
	// The active settings; the sockets and negotiated values are those of the first connection.
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
	if spec.Discovers {
		if err = discoverable(spec); err != nil {
			return nil, err
		}
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
		grpc.WithIdleTimeout(0),
	}
	if !spec.Discovers {
		d.options = append(d.options, grpc.WithDisableServiceConfig())
	}
	if given.stream != 0 {
		d.options = append(d.options, grpc.WithStaticStreamWindowSize(given.stream))
	}
	if given.connection != 0 {
		d.options = append(d.options, grpc.WithStaticConnWindowSize(given.connection))
	}
	return d, nil
}

// Dial opens a channel, and waits for a connection: to the next server, or to the servers of a control plane.
func (d *driver) Dial(ctx context.Context) (load.Opened, *contract.Failure) {
	if d.spec.Discovers {
		return d.discover(ctx)
	}
	c := &connection{caller: caller{call: d.call}, driver: d, server: d.spec.NextServer().String()}
	c.wasReset = func() bool { return c.tcp.WasReset() }
	var failure *contract.Failure
	if c.channel, failure = d.open("passthrough:///"+c.server, c.dial, handshaker{d.tls, c}); failure != nil {
		return load.Opened{}, failure
	}
	if failure = c.wait(ctx, c.server, c.unconnected); failure != nil {
		return load.Opened{}, failure
	}
	opened := load.Opened{Connection: c, Ready: c.ready}
	// With Fast Open the moment of the connection is invisible.
	if !d.sockets.FastOpen {
		opened.Connected = c.connected
	}
	return opened, nil
}

// open makes a channel, which does not connect yet.
func (d *driver) open(target string, dial func(context.Context, string) (net.Conn, error), secure handshaker) (
	*grpc.ClientConn, *contract.Failure) {
	security := grpc.WithTransportCredentials(insecure.NewCredentials())
	if d.tls != nil {
		security = grpc.WithTransportCredentials(secure)
	}
	own := []grpc.DialOption{security, grpc.WithContextDialer(dial)}
	channel, err := grpc.NewClient(target, append(own, d.options...)...)
	if err != nil {
		return nil, contract.Failed(contract.Other, "making a channel to %s: %v", target, err)
	}
	return channel, nil
}

// see notes the active settings of the first connection.
func (d *driver) see(tcp *net.TCPConn, state *tls.ConnectionState) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.seen {
		return
	}
	d.seen = true
	if activeSettings, err := d.sockets.ActiveSettings(tcp); err == nil {
		d.configured.Add(activeSettings)
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
