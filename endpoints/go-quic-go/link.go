package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// link is an open QUIC connection, whatever is spoken over it.
type link struct {
	driver    *driver
	quic      *quic.Conn
	transport *quic.Transport
	udp       *socket.UDP
	ticket    *tlsside.Arrival
	account   *transport.Account
	ready     clock.Moment
	// noted says that the negotiated values were checked.
	noted atomic.Bool
	// early says that a request was handed over before the handshake was complete.
	early atomic.Bool
	// lost says that an error of the whole connection was seen.
	lost atomic.Bool

	deciding sync.Mutex
	rejected bool
}

// isUndecided says whether the handshake still goes on, so that bytes sent now are early data.
func (l *link) isUndecided() bool {
	select {
	case <-l.quic.HandshakeComplete():
		return false
	default:
		return true
	}
}

// negotiated notes the negotiated values, once the handshake is complete, and checks the application protocol.
func (l *link) negotiated() *contract.Failure {
	if l.noted.Load() || l.isUndecided() {
		return nil
	}
	l.noted.Store(true)
	state := l.quic.ConnectionState()
	l.driver.see(&state)
	return l.driver.tls.Check(&state.TLS)
}

// afterRejection waits until the handshake is complete after the server did not accept early data. The streams that were
// open are dead, and what they carried is sent again (RFC 9001, section 4.6.2). renew is called once, with what goes on.
func (l *link) afterRejection(by clock.Moment, renew func(*quic.Conn)) error {
	l.deciding.Lock()
	defer l.deciding.Unlock()
	if l.rejected {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), by.Time())
	defer cancel()
	next, err := l.quic.NextConnection(ctx)
	if err == nil {
		l.rejected = true
		renew(next)
	}
	return err
}

// fail is the failure of a request.
func (l *link) fail(err error) *contract.Failure {
	if isOfConnection(err) {
		l.lost.Store(true)
	}
	return failed("the request", err)
}

func (l *link) IsOpen() bool { return !l.lost.Load() && l.quic.Context().Err() == nil }

// Handshake is proven by quic-go: it says whether a session was resumed, and whether the keys of 0-RTT were accepted. A
// request that was handed over when the handshake was complete was no early data, whatever was accepted.
func (l *link) Handshake() contract.Handshake {
	if l.isUndecided() {
		return contract.Unknown
	}
	l.deciding.Lock()
	rejected := l.rejected
	l.deciding.Unlock()
	state := l.quic.ConnectionState()
	switch {
	case rejected:
		return contract.EarlyRejected
	case state.Used0RTT && l.early.Load():
		return contract.EarlyAccepted
	}
	return tlsside.Handshake(&state.TLS)
}

func (l *link) close(code quic.ApplicationErrorCode) {
	if l.IsOpen() {
		_ = l.negotiated()
		// For the time that the packet may take.
		l.ticket.Wait(3*l.quic.ConnectionStats().SmoothedRTT + 100*time.Millisecond)
	}
	l.end(code)
}

func (l *link) end(code quic.ApplicationErrorCode) {
	l.udp.Release()
	_ = l.quic.CloseWithError(code, "")
	l.account.Leave()
	_, _ = l.transport.Close(), l.udp.Close()
}

// Abandon does not wait: quic-go is slow to close if the peer does not answer.
func (l *link) Abandon() {
	l.lost.Store(true)
	go l.end(0)
}
