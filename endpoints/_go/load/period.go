package load

import (
	"sync"
	"sync/atomic"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// period is the warm-up or the measured window: requests are sent by the schedule until its extent is used up.
type period struct {
	*sender
	*pool // nil where every request opens its connection
	phase phase
	start clock.Moment
	limit *limit
	// keep is nil in the warm-up.
	keep recorder
	last atomic.Int64
}

func newPeriod(b *sender, p *pool, of phase, extent contract.Extent, start clock.Moment, keep recorder) *period {
	return &period{sender: b, pool: p, phase: of, start: start, limit: newLimit(extent, start), keep: keep}
}

// run sends the requests, and returns the end of the last one when none is in flight.
func (p *period) run() clock.Moment {
	if p.spec.Schedule.Open {
		p.dispatch()
	} else {
		var workers sync.WaitGroup
		for user := range p.spec.Schedule.Workers {
			workers.Go(func() { p.work(user) })
		}
		workers.Wait()
	}
	return max(clock.Moment(p.last.Load()), p.start)
}

// ended notes the end of a user's last request.
func (p *period) ended(at clock.Moment) {
	for {
		last := p.last.Load()
		if last >= int64(at) || p.last.CompareAndSwap(last, int64(at)) {
			return
		}
	}
}

// work is one worker of a closed loop: it sends, waits for the response, pauses, and sends again.
func (p *period) work(user int) {
	schedule := p.spec.Schedule
	random, timer := random(p.spec.Seed, p.phase, user), newWaiter()
	defer timer.Close()
	own := p.ownLane(user)
	intended, end := p.start, clock.Moment(0)
	for {
		timer.Until(intended)
		l := own
		if l == nil {
			l = <-p.free
		}
		// The start decides: "none starts after the end".
		goesOn := p.limit.take(max(clock.Now(), intended))
		if goesOn {
			end = p.perform(l, intended, user, p.keep)
		}
		if own == nil {
			p.free <- l
		}
		if !goesOn {
			p.ended(end)
			return
		}
		// Without a pause, the intended start is the moment when the worker is free, which is now.
		if intended = clock.Now(); schedule.Pauses {
			intended = end.Add(pause(schedule, random))
		}
	}
}

// ownLane is a worker's own lane, if each worker has one.
func (p *period) ownLane(user int) *lane {
	if p.pool == nil {
		return &lane{scratch: newScratch()}
	}
	if len(p.lanes) == p.spec.Schedule.Workers {
		return p.lanes[user]
	}
	return nil
}
