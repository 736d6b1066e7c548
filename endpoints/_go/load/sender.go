package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// sender is shared by all lanes: the driver, its limits, the check of responses.
type sender struct {
	driver      Driver
	spec        *contract.ClientSpec
	multiplexes bool
	// numbers counts the connections that were opened.
	numbers atomic.Uint32
	// first is the first failure of the window, for the log.
	first atomic.Pointer[contract.Failure]
}

// perform sends one request over a lane and keeps its record; a nil recorder keeps nothing. It returns the end.
func (b *sender) perform(l *lane, intended clock.Moment, user int, keep recorder) clock.Moment {
	start := clock.Now()
	r := record{intended: min(intended, start), start: start, bytesOut: b.spec.Request.BodySize}
	failure := b.attempt(l, &r)
	if failure != nil {
		r.failure, r.end = failure.Kind, clock.Now()
	}
	if r.opened && l.held != nil {
		r.handshake = l.held.connection.Handshake()
	}
	if keep != nil {
		keep.keep(user, &r)
		if failure != nil {
			b.first.CompareAndSwap(nil, failure)
		}
	}
	l.release(b, failure)
	return r.end
}

func (b *sender) attempt(l *lane, r *record) *contract.Failure {
	by := r.start.Add(b.spec.RequestTimeout)
	if failure := l.connect(b, r, min(by, r.start.Add(b.spec.ConnectTimeout))); failure != nil {
		r.bytesOut = 0
		return failure
	}
	answer, failure := l.held.connection.Exchange(l.scratch, by, nil)
	r.firstByte, r.end, r.bytesIn, r.status = answer.FirstByte, answer.LastByte, answer.BytesIn, uint16(answer.Status)
	if failure == nil {
		failure = b.judge(answer)
	}
	return failure
}

// dial opens a connection until a deadline.
func (b *sender) dial(by clock.Moment) (Opened, *contract.Failure) {
	ctx, cancel := context.WithDeadline(context.Background(), by.Time())
	defer cancel()
	opened, failure := b.driver.Dial(ctx)
	if failure != nil && ctx.Err() != nil {
		return opened, contract.Failed(contract.Timeout, "connecting took longer than %v", min(b.spec.ConnectTimeout, b.spec.RequestTimeout))
	}
	return opened, failure
}

// judge says whether a complete response is right.
func (b *sender) judge(answer Answer) *contract.Failure {
	expect, http := b.spec.Request.Expect, b.spec.HTTP()
	switch {
	case http && expect != nil && answer.Status != expect.Status:
		return contract.Failed(contract.Status, "the server answered with status %d instead of %d", answer.Status, expect.Status)
	// To measure a redirect instead of its target would give a wrong number that looks right. 304 is no redirect.
	case http && expect == nil && answer.Status >= 300 && answer.Status != 304:
		return contract.Failed(contract.Status, "the server answered with status %d; redirects are not followed", answer.Status)
	case expect != nil && answer.BytesIn < expect.BodySize:
		return contract.Failed(contract.Truncated, "the response has %d bytes instead of %d", answer.BytesIn, expect.BodySize)
	case expect != nil && answer.BytesIn > expect.BodySize:
		return contract.Failed(contract.Digest, "the response has %d bytes instead of %d", answer.BytesIn, expect.BodySize)
	}
	return nil
}

// check sends the check request: the only one whose body is hashed. Without an expectation in the spec, no check is
// possible, and wirelab may not have started the server.
func (b *sender) check() *contract.Failure {
	expect := b.spec.Request.Expect
	if expect == nil {
		return nil
	}
	digest := sha256.New()
	failure := b.once(func(bytes []byte) { digest.Write(bytes) })
	if got := hex.EncodeToString(digest.Sum(nil)); failure == nil && !strings.EqualFold(got, expect.SHA256) {
		failure = contract.Failed(contract.Digest, "the response has the SHA-256 %s instead of %s", got, expect.SHA256)
	}
	if failure != nil {
		return contract.Failed(failure.Kind, "the check request (%s %s from %s over %s) failed: %s", b.spec.Request.Method,
			b.spec.Request.Path, b.spec.Address, b.spec.Protocol, failure.Message)
	}
	return nil
}

// once sends the request on a connection that is opened and closed for it.
func (b *sender) once(look func([]byte)) *contract.Failure {
	opened, failure := b.dial(clock.Now().Add(min(b.spec.ConnectTimeout, b.spec.RequestTimeout)))
	if failure != nil {
		return failure
	}
	answer, failure := opened.Connection.Exchange(newScratch(), clock.Now().Add(b.spec.RequestTimeout), look)
	if failure == nil {
		failure = b.judge(answer)
	}
	if failure != nil {
		opened.Connection.Abandon()
		return failure
	}
	opened.Connection.Close()
	return nil
}

// ticketsForOpenLoop is the size of the store if the schedule does not limit the number of open connections.
const ticketsForOpenLoop = 64

// prime opens and closes connections until the store has a ticket for each simultaneous connection. A server that
// gives no tickets is no failure here: each record says how its connection began.
func (b *sender) prime() *contract.Failure {
	if b.spec.Resumption == "none" {
		return nil
	}
	wanted := b.spec.Connections
	if b.spec.PerRequest {
		wanted = ticketsForOpenLoop
		if !b.spec.Schedule.Open {
			wanted = b.spec.Schedule.Workers
		}
	}
	for before := b.driver.Tickets(); before < wanted; {
		if failure := b.once(nil); failure != nil {
			return failure
		}
		now := b.driver.Tickets()
		if now <= before {
			break
		}
		before = now
	}
	return nil
}

// waiter waits for moments; tests have one that does not.
type waiter interface {
	Until(clock.Moment)
	Close()
}

var newWaiter = func() waiter { return new(clock.Timer) }
