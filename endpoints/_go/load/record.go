package load

import (
	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

// record is one request, as the client saw it. It has no pointers. A moment that did not happen is 0.
type record struct {
	intended, start, connected, ready, firstByte, end clock.Moment
	bytesIn, bytesOut                                 uint64
	connection                                        uint32
	status                                            uint16
	opened                                            bool
	handshake                                         contract.Handshake
	failure                                           contract.Kind
}

// recorder keeps records while the window lasts; results are made of them afterwards.
type recorder interface {
	// keep is called by many users at the same time.
	keep(user int, r *record)
	// counts are the number of succeeded requests, and of failed ones by kind.
	counts() (uint64, map[string]uint64)
	// write writes the results file, with times from zero on.
	write(path string, zero clock.Moment) error
}

func newRecorder(spec *contract.ClientSpec, users int) (recorder, error) {
	if spec.Histograms {
		return newHistograms(users), nil
	}
	return newSamples(expected(spec))
}

// expected is an estimate of the number of requests, for the memory of their records.
func expected(spec *contract.ClientSpec) uint64 {
	const most = 500_000
	if spec.Extent.Requests > 0 {
		return min(spec.Extent.Requests, most)
	}
	rate := 100_000.0 // an estimate: the number for a fast protocol
	if spec.Schedule.Open {
		rate = 1.1 * spec.Schedule.Rate
	}
	return uint64(min(rate*spec.Extent.Duration.Seconds(), most))
}
