package load

import (
	"fmt"
	"os"
	"runtime"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// Run plays a client from `ready` to `done`.
func Run(spec *contract.ClientSpec, driver Driver) error {
	if spec.Threads > 0 {
		runtime.GOMAXPROCS(spec.Threads)
	}
	users := spec.Schedule.Workers
	if spec.Schedule.Open {
		users = spec.Connections * spec.Streams
		if spec.PerRequest {
			users = ticketsForOpenLoop
		}
	}
	keep, err := newRecorder(spec, users)
	if err != nil {
		return err
	}
	commands := contract.Listen(os.Stdin, "finish", giveUp)
	configured := func() contract.Configured {
		c := driver.Configured()
		c["threads"] = runtime.GOMAXPROCS(0)
		return c
	}
	contract.Emit(contract.Ready{Event: "ready", Configured: configured()})

	if _, err := commands.Expect("go"); err != nil {
		return err
	}
	b := &sender{driver: driver, spec: spec, multiplexes: spec.Multiplexes()}
	pool, failure := prepare(b)
	if failure != nil {
		return failure
	}
	contract.EmitWarm()

	zero, err := commands.Expect("go")
	if err != nil {
		return err
	}
	window := newPeriod(b, pool, measured, spec.Extent, zero, keep).run() - zero
	contract.Emit(contract.End{Event: "end", WindowNs: int64(window)})

	if _, err := commands.Expect("finish"); err != nil {
		return err
	}
	report := driver.Accounts().Report()
	if pool != nil {
		pool.close()
	}
	driver.Close()
	if first := b.first.Load(); first != nil {
		fmt.Fprintf(os.Stderr, "the first failure of the window: %s: %s\n", first.Kind, first.Message)
	}
	if err := keep.write(spec.Results, zero); err != nil {
		return err
	}
	succeeded, errors := keep.counts()
	contract.Emit(contract.Done{Event: "done", Requests: succeeded, Errors: errors, Configured: configured(), Transport: report})
	return nil
}

// prepare does everything before the measured window. The pool is nil if every request opens its connection.
func prepare(b *sender) (p *pool, failure *contract.Failure) {
	if failure = b.check(); failure != nil {
		return nil, failure
	}
	if failure = b.prime(); failure != nil {
		return nil, failure
	}
	if !b.spec.PerRequest {
		if p, failure = openPool(b); failure != nil {
			return nil, failure
		}
	}
	if b.spec.WarmUp != nil {
		newPeriod(b, p, warmUp, *b.spec.WarmUp, clock.Now(), nil).run()
	}
	if b.spec.PerRequest {
		// The connections of the warm-up are not in the results.
		b.numbers.Store(0)
	}
	// Collects garbage, so that every window begins with live data only.
	runtime.GC()
	b.driver.Accounts().Begin()
	return p, nil
}

// giveUp ends a client at the word `stop`.
func giveUp() {
	contract.Finish(contract.Failed(contract.Other, "told to stop before the end"))
}
