package load

import (
	"sync"
	"sync/atomic"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// lane carries one request at a time, over a connection (or a stream's worth of one) that it holds.
type lane struct {
	scratch *Scratch
	// link is the persistent connection that it belongs to; nil where every request opens its own.
	link *link
	held *held
}

// held is a connection with its number.
type held struct {
	connection Connection
	number     uint32
}

// link is a persistent connection, shared by the lanes that have a stream of it.
type link struct {
	current atomic.Pointer[held]
	// opening is locked while one lane opens the connection and the others wait for it.
	opening sync.Mutex
}

// connect makes sure that the lane has a connection, and notes in the record if it opened one.
func (l *lane) connect(b *sender, r *record, by clock.Moment) *contract.Failure {
	if l.link == nil {
		return l.open(b, r, by)
	}
	if l.held = l.link.open(); l.held != nil {
		r.connection = l.held.number
		return nil
	}
	l.link.opening.Lock()
	defer l.link.opening.Unlock()
	if l.held = l.link.open(); l.held != nil {
		r.connection = l.held.number
		return nil
	}
	if failure := l.open(b, r, by); failure != nil {
		return failure
	}
	l.link.current.Store(l.held)
	return nil
}

// open is the connection if it can carry a request.
func (k *link) open() *held {
	if h := k.current.Load(); h != nil && h.connection.IsOpen() {
		return h
	}
	return nil
}

func (l *lane) open(b *sender, r *record, by clock.Moment) *contract.Failure {
	r.connection = b.numbers.Add(1) - 1
	opened, failure := b.dial(by)
	if failure != nil {
		return failure
	}
	r.opened, r.connected, r.ready = true, opened.Connected, opened.Ready
	l.held = &held{opened.Connection, r.connection}
	return nil
}

// release releases the connection after a request. Closing is not part of the request's time.
func (l *lane) release(b *sender, failure *contract.Failure) {
	h := l.held
	l.held = nil
	if failure != nil {
		// The library's remaining state of the failed request must not reach the next one.
		l.scratch = newScratch()
	}
	switch {
	case h == nil:
	case l.link == nil && failure == nil:
		h.connection.Close()
	case l.link == nil:
		h.connection.Abandon()
	// With one request at a time, its late response would be taken for that of the next one.
	case failure != nil && (!b.multiplexes || !h.connection.IsOpen()):
		if l.link.current.CompareAndSwap(h, nil) {
			h.connection.Abandon()
		}
	}
}

// pool has the lanes of persistent connections, connected.
type pool struct {
	lanes []*lane
	links []*link
	// free has the unused lanes; waiting users get them first come, first served.
	free chan *lane
}

// openPool opens the persistent connections. Successive lanes belong to different ones, so that requests are spread over
// all.
func openPool(b *sender) (*pool, *contract.Failure) {
	p := new(pool)
	for range b.spec.Connections {
		l := &lane{scratch: newScratch(), link: new(link)}
		if failure := l.connect(b, new(record), clock.Now().Add(b.spec.ConnectTimeout)); failure != nil {
			return nil, failure
		}
		l.held = nil
		p.links = append(p.links, l.link)
		p.lanes = append(p.lanes, l)
	}
	for range b.spec.Streams - 1 {
		for _, link := range p.links {
			p.lanes = append(p.lanes, &lane{scratch: newScratch(), link: link})
		}
	}
	p.free = make(chan *lane, len(p.lanes))
	for _, l := range p.lanes {
		p.free <- l
	}
	return p, nil
}

// close closes all connections at the same time.
func (p *pool) close() {
	var closing sync.WaitGroup
	for _, link := range p.links {
		if h := link.current.Swap(nil); h != nil {
			closing.Go(h.connection.Close)
		}
	}
	closing.Wait()
}
