// Package load sends requests by a schedule and records them. It knows no protocol and no library: a Driver has those.
package load

import (
	"context"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/transport"
)

// Driver opens connections with one library, to the server of one spec.
type Driver interface {
	// Dial opens a connection; the context has its deadline.
	Dial(context.Context) (Opened, *contract.Failure)
	// Configured has the active settings known so far.
	Configured() contract.Configured
	// Tickets is the number of session tickets in store.
	Tickets() int
	// Accounts of all connections.
	Accounts() *transport.Accounts
	// Close is called at the very end, when every connection is closed.
	Close()
}

// Opened is a connection with the moments of its opening. An unseen moment is 0.
type Opened struct {
	Connection Connection
	// Connected is when its transport was connected, Ready when it could send.
	Connected, Ready clock.Moment
}

// Connection carries requests; several at a time where its protocol multiplexes.
type Connection interface {
	// Exchange sends the spec's request and receives the response until a deadline. It passes pieces of the body to
	// look, unless look is nil.
	Exchange(scratch *Scratch, by clock.Moment, look func([]byte)) (Answer, *contract.Failure)
	// IsOpen says whether it can carry another request.
	IsOpen() bool
	// Handshake is the kind of its handshake, once decided.
	Handshake() contract.Handshake
	// Close ends it in good order. If a session ticket is wanted and missing, it first waits briefly for one.
	Close()
	// Abandon ends a connection that failed or is no longer wanted.
	Abandon()
}

// Answer is a complete response, or its part before a failure.
type Answer struct {
	FirstByte clock.Moment
	LastByte  clock.Moment
	BytesIn   uint64
	// Status is 0 without a response.
	Status int
}

// Scratch is memory that a lane lends to its exchanges, one after the other. It is made once, because work that is the
// same for every request is not part of the measurement. A driver keeps its own data in Own.
type Scratch struct {
	Buffer []byte
	Own    any
}

// Bytes of response body read at a time.
const readSize = 64 * 1024

func newScratch() *Scratch { return &Scratch{Buffer: make([]byte, readSize)} }
