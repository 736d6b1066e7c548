// Package clock is the one monotonic clock of all records, and exact waits by it.
package clock

import "time"

// Moment is nanoseconds since the process began. 0 is before every moment: it stands for an event that did not happen.
type Moment int64

// A little in the past, so that no moment is 0.
var base = time.Now().Add(-time.Microsecond)

// Now is the present moment.
func Now() Moment { return Moment(time.Since(base)) }

// Time is the moment for the standard library's deadlines.
func (m Moment) Time() time.Time { return base.Add(time.Duration(m)) }

// Add is the moment that much later, at most the end of the clock.
func (m Moment) Add(length time.Duration) Moment {
	if later := m + Moment(length); later >= m || length < 0 {
		return later
	}
	return 1<<63 - 1
}
