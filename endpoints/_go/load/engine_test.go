package load

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/transport"
)

// fake is a driver without a network; the responses of its connections are a function of the request's number.
type fake struct {
	accounts transport.Accounts
	answer   func(number uint64) (Answer, *contract.Failure)
	dialled  atomic.Int64
	refuses  bool
	requests atomic.Uint64
	tickets  atomic.Int64
	closed   atomic.Int64
	// inFlight is how many requests are under way, most the highest it has been.
	inFlight, most atomic.Int64
}

type fakeConnection struct {
	driver *fake
	broken atomic.Bool
}

func (f *fake) Dial(context.Context) (Opened, *contract.Failure) {
	if f.refuses {
		return Opened{}, contract.Failed(contract.Refused, "no server listens")
	}
	f.dialled.Add(1)
	now := clock.Now()
	return Opened{&fakeConnection{driver: f}, now, clock.Now()}, nil
}
func (f *fake) Configured() contract.Configured { return contract.Configured{} }
func (f *fake) Tickets() int                    { return int(f.tickets.Load()) }
func (f *fake) Accounts() *transport.Accounts   { return &f.accounts }
func (f *fake) Close()                          {}

func (c *fakeConnection) Exchange(_ *Scratch, _ clock.Moment, look func([]byte)) (Answer, *contract.Failure) {
	f := c.driver
	now := f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
	}
	answer, failure := f.answer(f.requests.Add(1) - 1)
	if failure != nil {
		c.broken.Store(true)
	}
	if look != nil {
		look([]byte("hello"))
	}
	answer.FirstByte = clock.Now()
	answer.LastByte = answer.FirstByte
	return answer, failure
}
func (c *fakeConnection) IsOpen() bool                  { return !c.broken.Load() }
func (c *fakeConnection) Handshake() contract.Handshake { return contract.Full }
func (c *fakeConnection) Close() {
	c.driver.closed.Add(1)
	c.driver.tickets.Add(1)
}
func (c *fakeConnection) Abandon() { c.driver.closed.Add(1) }

func right(uint64) (Answer, *contract.Failure) { return Answer{BytesIn: 5, Status: 200}, nil }

// instant is a waiter for which every moment has come.
type instant struct{}

func (instant) Until(clock.Moment) {}
func (instant) Close()             {}

func spec(change func(*contract.ClientSpec)) *contract.ClientSpec {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	s := &contract.ClientSpec{
		Common:     contract.Common{Protocol: "h1"},
		Request:    contract.Request{Method: "GET", Path: "/", Expect: &contract.Expect{Status: 200, BodySize: 5, SHA256: hello}},
		PerRequest: true, Schedule: contract.Schedule{Workers: 3}, Extent: contract.Extent{Requests: 31},
		Resumption: "none", ConnectTimeout: time.Minute, RequestTimeout: time.Minute, Seed: 1,
	}
	change(s)
	return s
}

// perform prepares and runs the measured window, and gives its records.
func perform(t *testing.T, f *fake, s *contract.ClientSpec) []record {
	t.Helper()
	newWaiter = func() waiter { return instant{} }
	t.Cleanup(func() { newWaiter = func() waiter { return new(clock.Timer) } })
	b := &sender{driver: f, spec: s, multiplexes: s.Multiplexes()}
	pool, failure := prepare(b)
	if failure != nil {
		t.Fatal(failure)
	}
	keep, err := newSamples(100)
	if err != nil {
		t.Fatal(err)
	}
	newPeriod(b, pool, measured, s.Extent, clock.Now(), keep).run()
	if pool != nil {
		pool.close()
	}
	all := make([]record, keep.count.Load())
	for i := range all {
		all[i] = *keep.at(uint64(i))
	}
	return all
}

func TestEveryRequestOpensAConnectionOfItsOwn(t *testing.T) {
	f := &fake{answer: right}
	all := perform(t, f, spec(func(s *contract.ClientSpec) { s.WarmUp = &contract.Extent{Requests: 7} }))
	seen := map[uint32]bool{}
	for _, r := range all {
		seen[r.connection] = true
		if !r.opened || r.connected < r.start || r.ready < r.connected || r.firstByte < r.ready || r.end < r.firstByte ||
			r.intended > r.start || r.handshake != contract.Full || r.failure != contract.None || r.status != 200 {
			t.Errorf("a record is %+v", r)
		}
	}
	if len(all) != 31 || len(seen) != 31 || !seen[0] || !seen[30] {
		t.Errorf("%d requests had %d connections", len(all), len(seen))
	}
	// The check request, and the warm-up.
	if got := f.dialled.Load(); got != 31+1+7 || f.closed.Load() != got {
		t.Errorf("%d connections were opened and %d closed", got, f.closed.Load())
	}
	if f.most.Load() > 3 {
		t.Errorf("%d requests of three workers were under way", f.most.Load())
	}
}

func TestWorkersShareTheirPersistentConnections(t *testing.T) {
	for _, c := range []struct{ workers, connections, streams int }{{6, 3, 1}, {3, 3, 1}, {1, 4, 1}, {8, 2, 4}} {
		f := &fake{answer: right}
		all := perform(t, f, spec(func(s *contract.ClientSpec) {
			s.Protocol, s.PerRequest, s.Connections, s.Streams = "h2", false, c.connections, c.streams
			s.Schedule.Workers, s.Extent.Requests = c.workers, 40
		}))
		seen := map[uint32]bool{}
		for _, r := range all {
			seen[r.connection] = true
			if r.opened || r.connected != 0 || r.ready != 0 || r.handshake != contract.Unknown || r.connection >= uint32(c.connections) {
				t.Errorf("%+v: a record is %+v", c, r)
			}
		}
		if len(all) != 40 || f.dialled.Load() != int64(c.connections)+1 || f.most.Load() > int64(c.connections*c.streams) {
			t.Errorf("%+v: %d requests, %d connections, %d under way", c, len(all), f.dialled.Load(), f.most.Load())
		}
		if c.workers == 1 && len(seen) != c.connections {
			t.Errorf("%+v: one worker used %d connections", c, len(seen))
		}
	}
}

func TestABrokenConnectionIsReplacedByTheNextRequestThatNeedsIt(t *testing.T) {
	f := &fake{answer: func(number uint64) (Answer, *contract.Failure) {
		if number == 4 {
			return Answer{}, contract.Failed(contract.Reset, "broken")
		}
		return right(number)
	}}
	all := perform(t, f, spec(func(s *contract.ClientSpec) {
		s.PerRequest, s.Connections, s.Streams, s.Schedule.Workers, s.Extent.Requests = false, 1, 1, 1, 10
	}))
	for i, r := range all {
		// The check request was number 0, so that number 4 is the fourth of the window.
		wantConnection, wantOpened, wantFailure := uint32(0), i == 4, contract.None
		if i > 3 {
			wantConnection = 1
		}
		if i == 3 {
			wantFailure = contract.Reset
		}
		if r.connection != wantConnection || r.opened != wantOpened || r.failure != wantFailure {
			t.Errorf("record %d is %+v", i, r)
		}
	}
}

func TestAnswersAreJudged(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		want   contract.Kind
	}{
		{Answer{BytesIn: 5, Status: 200}, contract.None},
		{Answer{BytesIn: 5, Status: 404}, contract.Status},
		{Answer{BytesIn: 4, Status: 200}, contract.Truncated},
		{Answer{BytesIn: 6, Status: 200}, contract.Digest},
	} {
		b := &sender{spec: spec(func(*contract.ClientSpec) {})}
		got := contract.None
		if failure := b.judge(c.answer); failure != nil {
			got = failure.Kind
		}
		if got != c.want {
			t.Errorf("%+v is judged %v, not %v", c.answer, got, c.want)
		}
	}
}

func TestTheCheckRequestFailsWithAnotherDigestAndWithoutAServer(t *testing.T) {
	f := &fake{answer: right}
	b := &sender{driver: f, spec: spec(func(s *contract.ClientSpec) { s.Request.Expect.SHA256 = "00" })}
	if failure := b.check(); failure == nil || failure.Kind != contract.Digest {
		t.Errorf("another digest: %v", failure)
	}
	b = &sender{driver: &fake{refuses: true}, spec: spec(func(*contract.ClientSpec) {})}
	if failure := b.check(); failure == nil || failure.Kind != contract.Refused {
		t.Errorf("no server: %v", failure)
	}
}

func TestTicketsAreThereForEveryWorkerBeforeTheWindow(t *testing.T) {
	f := &fake{answer: right}
	b := &sender{driver: f, spec: spec(func(s *contract.ClientSpec) { s.Resumption, s.Schedule.Workers = "resume", 5 })}
	if _, failure := prepare(b); failure != nil || f.Tickets() != 5 {
		t.Errorf("%d tickets for five workers, %v", f.Tickets(), failure)
	}
}

func TestAnOpenLoopSendsEveryArrivalThoughItsConnectionsAreBusy(t *testing.T) {
	gate := make(chan struct{})
	var once sync.Once
	f := &fake{answer: func(number uint64) (Answer, *contract.Failure) {
		if number > 0 { // the check request was number 0
			<-gate
		}
		return right(number)
	}}
	s := spec(func(s *contract.ClientSpec) {
		s.PerRequest, s.Connections, s.Streams = false, 2, 1
		s.Schedule, s.Extent.Requests = contract.Schedule{Open: true, Rate: 1e6}, 20
	})
	// Nothing is answered before the last request has arrived.
	arrived := 0
	waiting := func() waiter {
		return waitFunc(func(clock.Moment) {
			if arrived++; arrived == 20 {
				once.Do(func() { close(gate) })
			}
		})
	}
	b := &sender{driver: f, spec: s}
	pool, failure := prepare(b)
	if failure != nil {
		t.Fatal(failure)
	}
	newWaiter = waiting
	defer func() { newWaiter = func() waiter { return new(clock.Timer) } }()
	keep, err := newSamples(20)
	if err != nil {
		t.Fatal(err)
	}
	start := clock.Now()
	newPeriod(b, pool, measured, s.Extent, start, keep).run()
	if keep.count.Load() != 20 || f.most.Load() > 2 {
		t.Errorf("%d requests, %d under way", keep.count.Load(), f.most.Load())
	}
	for i := range keep.count.Load() {
		r := keep.at(i)
		if r.failure != contract.None || r.intended > r.start || (r.intended-start)%1000 != 0 && r.intended != r.start {
			t.Errorf("record %d is %+v", i, *r)
		}
	}
}

type waitFunc func(clock.Moment)

func (w waitFunc) Until(at clock.Moment) { w(at) }
func (w waitFunc) Close()                {}

func TestWhatWaitsLongerThanTheTimeOutAfterTheEndFails(t *testing.T) {
	f := &fake{answer: right}
	s := spec(func(s *contract.ClientSpec) { s.Schedule = contract.Schedule{Open: true, Rate: 1000} })
	b := &sender{driver: f, spec: s}
	keep, err := newSamples(5)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeriod(b, nil, measured, s.Extent, clock.Now(), keep)
	l := &line{period: p, waiting: []clock.Moment{10, 20}, latestStart: 1}
	l.carry(&lane{scratch: newScratch()}, 5, 0)
	want := []contract.Kind{contract.None, contract.Timeout, contract.Timeout}
	for i, kind := range want {
		if r := keep.at(uint64(i)); r.failure != kind || r.end < r.start {
			t.Errorf("record %d is %+v", i, *r)
		}
	}
}
