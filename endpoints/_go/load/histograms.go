package load

import (
	"bufio"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// histograms keeps distributions and sums in one part per running thread, so that users seldom wait for one
// another.
type histograms struct{ parts []part }

type part struct {
	lock sync.Mutex
	counters
	_ [64]byte // parts do not share a cache line
}

// counters are one part, or the sum of all.
type counters struct {
	distributions [distributions]distribution
	requests      uint64
	bytesIn       uint64
	bytesOut      uint64
	connections   uint64
	errors        map[string]uint64
	handshakes    map[string]uint64
}

const (
	response = iota
	service
	lag
	handshake
	firstByte
	failure
	distributions
)

func newHistograms(users int) *histograms {
	h := &histograms{make([]part, min(max(users, 1), runtime.GOMAXPROCS(0)))}
	for i := range h.parts {
		h.parts[i].counters = newCounters()
	}
	return h
}

func newCounters() counters {
	c := counters{errors: map[string]uint64{}, handshakes: map[string]uint64{}}
	for i := range c.distributions {
		c.distributions[i] = newDistribution()
	}
	return c
}

func (h *histograms) keep(user int, r *record) {
	p := &h.parts[user%len(h.parts)]
	p.lock.Lock()
	p.count(r)
	p.lock.Unlock()
}

func (c *counters) count(r *record) {
	c.distributions[lag].add(r.intended, r.start)
	if r.opened {
		c.connections++
	}
	if r.handshake != contract.Unknown {
		c.handshakes[r.handshake.String()]++
	}
	if r.failure != contract.None {
		c.errors[r.failure.String()]++
		c.distributions[failure].add(r.intended, r.end)
		return
	}
	c.requests++
	c.bytesIn += r.bytesIn
	c.bytesOut += r.bytesOut
	c.distributions[response].add(r.intended, r.end)
	c.distributions[service].add(r.start, r.end)
	c.distributions[firstByte].add(r.start, r.firstByte)
	if at := max(r.connected, r.ready); r.opened && at != 0 {
		c.distributions[handshake].add(r.start, at)
	}
}

func (h *histograms) sum() counters {
	sum := newCounters()
	for i := range h.parts {
		sum.merge(&h.parts[i].counters)
	}
	return sum
}

func (c *counters) merge(other *counters) {
	for i := range c.distributions {
		c.distributions[i].merge(&other.distributions[i])
	}
	c.requests += other.requests
	c.bytesIn += other.bytesIn
	c.bytesOut += other.bytesOut
	c.connections += other.connections
	for kind, count := range other.errors {
		c.errors[kind] += count
	}
	for kind, count := range other.handshakes {
		c.handshakes[kind] += count
	}
}

func (h *histograms) counts() (uint64, map[string]uint64) {
	sum := h.sum()
	return sum.requests, sum.errors
}

func (h *histograms) write(path string, _ clock.Moment) error {
	sum := h.sum()
	results := map[string]any{
		"requests": sum.requests, "errors": sum.errors, "bytes_in": sum.bytesIn, "bytes_out": sum.bytesOut,
		"connections": sum.connections, "handshakes": sum.handshakes,
	}
	for i, name := range [...]string{"response", "service", "lag", "handshake", "first_byte", "failure"} {
		encoded, err := sum.distributions[i].encode()
		if err != nil {
			return fmt.Errorf("encoding the histogram `%s`: %w", name, err)
		}
		results[name] = encoded
	}
	text, err := json.Marshal(results)
	if err != nil {
		return err
	}
	return writeFile(path, func(w *bufio.Writer) { _, _ = w.Write(append(text, '\n')) })
}
