package load

import (
	"sync"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// dispatch starts a request at each arrival, independent of the earlier ones.
//
// A request has its own connection or stream if the policy allows it. Otherwise it waits in line, with its
// response time running since its arrival. A request of the period is sent even if it waited beyond the period's end: to
// drop it would leave out the slowest requests. The wait has a limit, the request time-out after the end; what waits
// longer fails by time-out.
func (p *period) dispatch() {
	line := &line{period: p}
	arrivals := newArrivals(p.spec.Schedule, p.start, random(p.spec.Seed, p.phase, 0))
	timer := newWaiter()
	defer timer.Close()
	for {
		arrival := arrivals.next()
		if !p.limit.take(arrival) {
			break
		}
		timer.Until(arrival)
		line.arrive(arrival)
	}
	line.end(max(clock.Now(), p.start).Add(p.spec.RequestTimeout))
	line.carriers.Wait()
}

// line has the arrivals that wait for a carrier, and the carriers that wait for an arrival.
type line struct {
	period   *period
	carriers sync.WaitGroup

	lock    sync.Mutex
	waiting []clock.Moment
	idle    []chan clock.Moment
	users   int
	// latestStart of a waiting request; set after the last arrival.
	latestStart clock.Moment
}

// arrive gives a request to an idle carrier, or to a new one, or lets it wait.
func (l *line) arrive(at clock.Moment) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.idle) > 0 {
		// The carrier that was idle longest, to spread the requests over all connections.
		l.idle[0] <- at
		l.idle = l.idle[1:]
		return
	}
	own := l.lane()
	if own == nil {
		l.waiting = append(l.waiting, at)
		return
	}
	user := l.users
	l.users++
	l.carriers.Go(func() { l.carry(own, at, user) })
}

// lane is a lane for a further carrier, or nil.
func (l *line) lane() *lane {
	if l.period.pool == nil {
		return &lane{scratch: newScratch()}
	}
	if l.users < len(l.period.lanes) {
		return l.period.lanes[l.users]
	}
	return nil
}

// end stops the carriers when no request waits any more.
func (l *line) end(latestStart clock.Moment) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.latestStart = latestStart
	for _, next := range l.idle {
		close(next)
	}
	l.idle = nil
}

// carry sends requests over one lane, one after the other.
func (l *line) carry(own *lane, intended clock.Moment, user int) {
	p, end := l.period, clock.Moment(0)
	next := make(chan clock.Moment, 1)
	for goesOn, latestStart := true, clock.Moment(0); goesOn; intended, latestStart, goesOn = l.next(next) {
		if now := clock.Now(); latestStart != 0 && now > latestStart {
			end = p.giveUp(intended, now, user)
		} else {
			end = p.perform(own, intended, user, p.keep)
		}
	}
	p.ended(end)
}

// next waits for the next arrival for a carrier; false: no arrival follows.
func (l *line) next(mine chan clock.Moment) (at, latestStart clock.Moment, goesOn bool) {
	l.lock.Lock()
	if len(l.waiting) > 0 {
		at = l.waiting[0]
		l.waiting = l.waiting[1:]
		latestStart = l.latestStart
		l.lock.Unlock()
		return at, latestStart, true
	}
	if l.latestStart != 0 {
		l.lock.Unlock()
		return 0, 0, false
	}
	l.idle = append(l.idle, mine)
	l.lock.Unlock()
	at, goesOn = <-mine
	return at, 0, goesOn
}

func (p *period) giveUp(intended, now clock.Moment, user int) clock.Moment {
	if p.keep != nil {
		p.keep.keep(user, &record{intended: intended, start: now, end: now, failure: contract.Timeout})
		p.first.CompareAndSwap(nil, contract.Failed(contract.Timeout,
			"the request waited for a free connection until its time-out after the end of the window"))
	}
	return now
}
