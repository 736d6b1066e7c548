package contract

import (
	"math"
	"time"
)

func readSchedule(f *Fields) Schedule {
	s := Schedule{Open: f.Choose("loop", "closed", "open") == "open"}
	if s.Open {
		s.Rate = f.Number("rate_per_s")
		if f.Err() == nil && !(s.Rate > 0 && s.Rate <= 1e9) {
			f.refuse("%s: `rate_per_s` = %v; supported: more than 0, up to 1e9", f.where, s.Rate)
		}
		s.Poisson = f.Choose("arrivals", "uniform", "poisson") == "poisson"
	} else {
		s.Workers = int(f.Count("workers", 1, math.MaxInt32))
		if f.Has("pause") {
			s.readPause(f.Inner("pause"))
		}
	}
	f.End()
	return s
}

func (s *Schedule) readPause(f *Fields) {
	length := func(name string) uint64 { return f.Count(name, 0, math.MaxInt64) }
	switch f.Choose("kind", "none", "fixed", "uniform") {
	case "fixed":
		s.Pauses, s.MinPause = true, length("ns")
		s.MaxPause = s.MinPause
	case "uniform":
		s.Pauses, s.MinPause, s.MaxPause = true, length("min_ns"), length("max_ns")
		if s.MinPause > s.MaxPause {
			f.refuse("%s: `min_ns` is above `max_ns`", f.where)
		}
	}
	f.End()
}

func readExtent(f *Fields) Extent {
	var e Extent
	if f.Has("requests") {
		e.Requests = f.Count("requests", 1, math.MaxInt64)
	} else {
		e.Duration = readDuration(f, "duration_ns")
	}
	f.End()
	return e
}

func readDuration(f *Fields, name string) time.Duration {
	return time.Duration(f.Count(name, 1, math.MaxInt64))
}
