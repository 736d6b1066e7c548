package main

import (
	"net/http"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/fault"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
)

// ticketTimeout is how long a closing connection waits for its session ticket.
const ticketTimeout = 500 * time.Millisecond

// connection is one connection of net/http.
type connection struct {
	driver           *driver
	http             *http.ClientConn
	tcp              *socket.Metered
	connected, ready clock.Moment
	handshake        contract.Handshake
	ticket           *tlsside.Arrival
}

func (c *connection) Exchange(scratch *load.Scratch, by clock.Moment, look func([]byte)) (load.Answer, *contract.Failure) {
	answer, err := c.driver.template.Exchange(c.http, scratch, by, look)
	if err == nil {
		return answer, nil
	}
	failure := fault.Of("the request", err)
	// HTTP/2 takes a reset for the end of the connection.
	if failure.Kind == contract.Truncated && c.tcp.WasReset() {
		failure.Kind = contract.Reset
	}
	return answer, failure
}

func (c *connection) IsOpen() bool { return c.http.Err() == nil }

func (c *connection) Handshake() contract.Handshake { return c.handshake }

// Close waits for the ticket: net/http goes on reading from an idle connection, so that it can come.
func (c *connection) Close() {
	c.ticket.Wait(ticketTimeout)
	c.Abandon()
}

func (c *connection) Abandon() { _ = c.http.Close() }
