package load

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// phase is a period in which requests are sent by the schedule.
type phase uint64

const (
	warmUp phase = iota
	measured
)

// random is the source of one user (a worker of a closed loop, or the arrivals) in one phase: independent of all others.
func random(seed uint64, of phase, user int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(of))
	binary.LittleEndian.PutUint64(key[16:], uint64(user))
	return rand.New(rand.NewChaCha8(key))
}

// limit is the number of requests that may still start, or the latest start. All users of a phase share it.
type limit struct {
	left  atomic.Int64
	until clock.Moment
}

func newLimit(extent contract.Extent, start clock.Moment) *limit {
	l := new(limit)
	if extent.Requests > 0 {
		l.left.Store(int64(extent.Requests))
	} else {
		l.until = start.Add(extent.Duration)
	}
	return l
}

// take takes one request that starts at a moment; false: none is left.
func (l *limit) take(at clock.Moment) bool {
	if l.until > 0 {
		return at < l.until
	}
	return l.left.Add(-1) >= 0
}

// arrivals are the times of an open loop.
type arrivals struct {
	start    clock.Moment
	interval float64
	// last is the last arrival of a Poisson process, number that of the next one at equal intervals.
	last   float64
	number uint64
	random *rand.Rand
}

func newArrivals(schedule contract.Schedule, start clock.Moment, random *rand.Rand) *arrivals {
	a := &arrivals{start: start, interval: float64(time.Second) / schedule.Rate}
	if schedule.Poisson {
		a.random = random
	}
	return a
}

func (a *arrivals) next() clock.Moment {
	if a.random != nil {
		a.last += a.random.ExpFloat64() * a.interval
		return a.start.Add(time.Duration(a.last))
	}
	// Computed from the number of the arrival, not as a sum, so rounding errors do not accumulate.
	at := a.start.Add(time.Duration(float64(a.number) * a.interval))
	a.number++
	return at
}

// pause is the next pause of a closed loop.
func pause(schedule contract.Schedule, random *rand.Rand) time.Duration {
	length := schedule.MinPause
	if span := schedule.MaxPause - schedule.MinPause; span > 0 {
		length += random.Uint64N(span + 1)
	}
	return time.Duration(length)
}
