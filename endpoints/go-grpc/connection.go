package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/fault"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
)

// ticketTimeout is how long a closing connection waits for its session ticket.
const ticketTimeout = 500 * time.Millisecond

var errBroken = errors.New("the connection broke, and the load engine opens the next one")

// connection is a channel of grpc-go with one connection.
type connection struct {
	caller
	driver *driver
	server string
	dialed atomic.Bool
	// broken is the reason why the connection failed, if known.
	broken           atomic.Pointer[contract.Failure]
	tcp              *socket.Metered
	connected, ready clock.Moment
	handshake        contract.Handshake
	ticket           *tlsside.Arrival
}

// dial opens the connection. grpc-go would replace a broken one by itself, with times of unknown connections.
func (c *connection) dial(ctx context.Context, address string) (net.Conn, error) {
	if c.dialed.Swap(true) {
		return nil, errBroken
	}
	tcp, err := c.driver.sockets.Dial(ctx, address)
	if err != nil {
		return nil, c.fails(err)
	}
	c.connected = clock.Now()
	if c.driver.tls == nil {
		c.driver.see(tcp, nil)
	}
	c.tcp = socket.Meter(tcp, &c.driver.accounts)
	return c.tcp, nil
}

// fails notes why the connection failed.
func (c *connection) fails(err error) error {
	c.broken.Store(fault.Of("connecting to "+c.server, err))
	return err
}

// shaken notes the result of the handshake.
func (c *connection) shaken(_ net.Conn, ready clock.Moment, state *tls.ConnectionState, ticket *tlsside.Arrival) {
	c.ready, c.handshake, c.ticket = ready, tlsside.Handshake(state), ticket
	c.driver.see(c.tcp.TCPConn, state)
}

// unconnected is the reason why the connection failed.
func (c *connection) unconnected() *contract.Failure {
	if failure := c.broken.Load(); failure != nil {
		return failure
	}
	return contract.Failed(contract.Protocol, "connecting to %s: the server did not begin with SETTINGS of HTTP/2", c.server)
}

func (c *connection) IsOpen() bool { return c.channel.GetState() == connectivity.Ready }

func (c *connection) Handshake() contract.Handshake { return c.handshake }

// Close waits for the ticket: grpc-go goes on reading from an idle connection, so that it can come.
func (c *connection) Close() {
	c.ticket.Wait(ticketTimeout)
	c.Abandon()
}
