package tlsside

import (
	"crypto/tls"
	"sync"
	"time"
)

// mostTickets are kept; a server may send several for every connection, which needs one.
const mostTickets = 4096

// Tickets are session tickets, each given out once, the newest first. All are from one server, because a client uses no
// other. The zero value is ready.
type Tickets struct {
	lock sync.Mutex
	// A ring: when it is full, the newest takes the place of the oldest.
	ring  [mostTickets]*tls.ClientSessionState
	next  int
	count int
}

// Len is the number of tickets.
func (t *Tickets) Len() int {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.count
}

func (t *Tickets) put(ticket *tls.ClientSessionState) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.ring[t.next] = ticket
	t.next = (t.next + 1) % mostTickets
	t.count = min(t.count+1, mostTickets)
}

func (t *Tickets) take() *tls.ClientSessionState {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.count == 0 {
		return nil
	}
	t.count--
	t.next = (t.next + mostTickets - 1) % mostTickets
	ticket := t.ring[t.next]
	t.ring[t.next] = nil
	return ticket
}

// Arrival is one connection's view of the ticket store; it notices a ticket of this connection.
type Arrival struct {
	tickets *Tickets
	came    chan struct{}
	once    sync.Once
	resumes func(early bool)
}

// Get gives a ticket to the library.
func (a *Arrival) Get(string) (*tls.ClientSessionState, bool) {
	ticket := a.tickets.take()
	a.tell(ticket)
	return ticket, ticket != nil
}

// Put takes a ticket from the library. With nil the library marks one as useless; that one was already given out.
func (a *Arrival) Put(_ string, ticket *tls.ClientSessionState) {
	if ticket == nil {
		a.tell(nil)
		return
	}
	a.tickets.put(ticket)
	a.once.Do(func() { close(a.came) })
}

func (a *Arrival) tell(ticket *tls.ClientSessionState) {
	if a.resumes == nil {
		return
	}
	early := false
	if ticket != nil {
		_, state, err := ticket.ResumptionState()
		early = err == nil && state != nil && state.EarlyData
	}
	a.resumes(early)
}

// Wait waits for a ticket of this connection, at most for the time-out. Without one the next connection begins with a full
// handshake, and its record says so.
func (a *Arrival) Wait(timeout time.Duration) {
	if a == nil {
		return
	}
	select {
	case <-a.came:
		return
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-a.came:
	case <-timer.C:
	}
}
