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
	// Configured is what is in force, as far as it is known yet.
	Configured() contract.Configured
	// Tickets is how many session tickets there are in store.
	Tickets() int
	// Accounts of all connections.
	Accounts() *transport.Accounts
	// Close is called at the very end, when every connection is closed.
	Close()
}

// Opened is a connection with the moments of its opening. A moment that nobody saw is 0.
type Opened struct {
	Connection Connection
	// Connected is when its transport was connected, Ready when it could send.
	Connected, Ready clock.Moment
}

// Connection carries requests; several at a time where its protocol multiplexes.
type Connection interface {
	// Exchange sends the spec's request and receives the response until a deadline. What came of the body is shown to
	// look, if that is not nil.
	Exchange(scratch *Scratch, by clock.Moment, look func([]byte)) (Answer, *contract.Failure)
	// IsOpen says whether it can carry another request.
	IsOpen() bool
	// Handshake is how it began, once that is decided.
	Handshake() contract.Handshake
	// Close ends it politely. A session ticket that is wanted and still to come is waited for first, briefly.
	Close()
	// Abandon ends it where it failed or is not wanted any more.
	Abandon()
}

// Answer is a complete response, or what came of it before a failure.
type Answer struct {
	FirstByte clock.Moment
	LastByte  clock.Moment
	BytesIn   uint64
	// Status is 0 where there is none.
	Status int
}

// Scratch is what a lane lends to its exchanges, one after the other: made once, because what is the same for every
// request is not part of the measurement. A driver keeps in Own what it needs beyond the buffer.
type Scratch struct {
	Buffer []byte
	Own    any
}

// Bytes of response body read at a time.
const readSize = 64 * 1024

func newScratch() *Scratch { return &Scratch{Buffer: make([]byte, readSize)} }
