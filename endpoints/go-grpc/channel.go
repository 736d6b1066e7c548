package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/fault"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
)

// channel is a channel of grpc-go that gets its servers from a control plane. It has a connection to each server, replaces
// broken ones, and makes each call over the next.
type channel struct {
	caller
	driver *driver
	// broken is the reason why the last connection failed.
	broken atomic.Pointer[contract.Failure]
	// handshake is that of the first connection.
	handshake atomic.Pointer[contract.Handshake]
}

// discoverable refuses settings that a channel with connections of its own cannot have.
func discoverable(spec *contract.ClientSpec) error {
	switch {
	case spec.PerRequest:
		return contract.Refuse("connections: `policy` = \"per_request\" with `discovers`: each request would ask the control plane first")
	case spec.Resumption != "none":
		return contract.Refuse("`resumption` = %q with `discovers`: grpc-go opens the connections when it finds a reason to", spec.Resumption)
	case len(spec.Addresses) > 0:
		return contract.Refuse("`addresses` with `discovers`: the control plane knows them")
	}
	return nil
}

// discover opens a channel by the name of the servers, and waits until it has a connection to one of them.
func (d *driver) discover(ctx context.Context) (load.Opened, *contract.Failure) {
	c := &channel{caller: caller{call: d.call}, driver: d}
	var failure *contract.Failure
	if c.channel, failure = d.open("xds:///"+d.spec.ServerName, c.dial, handshaker{d.tls, c}); failure != nil {
		return load.Opened{}, failure
	}
	if failure = c.wait(ctx, d.spec.ServerName, c.unconnected); failure != nil {
		return load.Opened{}, failure
	}
	// Only grpc-go knows the times of its connections.
	return load.Opened{Connection: c}, nil
}

// dial opens one of the connections.
func (c *channel) dial(ctx context.Context, address string) (net.Conn, error) {
	tcp, err := c.driver.sockets.Dial(ctx, address)
	if err != nil {
		return nil, c.fails(err)
	}
	if c.driver.tls == nil {
		c.driver.see(tcp, nil)
	}
	return socket.Meter(tcp, &c.driver.accounts), nil
}

func (c *channel) fails(err error) error {
	c.broken.Store(fault.Of("connecting to a server of "+c.driver.spec.ServerName, err))
	return err
}

func (c *channel) shaken(tcp net.Conn, _ clock.Moment, state *tls.ConnectionState, _ *tlsside.Arrival) {
	handshake := tlsside.Handshake(state)
	c.handshake.CompareAndSwap(nil, &handshake)
	c.driver.see(tcp.(*socket.Metered).TCPConn, state)
}

// unconnected is the reason why no connection exists.
func (c *channel) unconnected() *contract.Failure {
	if failure := c.broken.Load(); failure != nil {
		return failure
	}
	spec := c.driver.spec
	return contract.Failed(contract.Other, "asking the control plane at %s for %s: it did not answer, or named no server",
		spec.Address, spec.ServerName)
}

// IsOpen is always so: grpc-go replaces connections by itself.
func (c *channel) IsOpen() bool { return true }

func (c *channel) Handshake() contract.Handshake {
	if handshake := c.handshake.Load(); handshake != nil {
		return *handshake
	}
	return contract.Unknown
}

func (c *channel) Close() { c.Abandon() }
