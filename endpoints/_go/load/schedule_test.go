package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

func times(schedule contract.Schedule, seed uint64, count int) []clock.Moment {
	a := newArrivals(schedule, 5, random(seed, measured, 0))
	all := make([]clock.Moment, count)
	for i := range all {
		all[i] = a.next()
	}
	return all
}

func TestUniformArrivalsAreEquallySpacedFromTheStartOn(t *testing.T) {
	for i, at := range times(contract.Schedule{Open: true, Rate: 1000}, 1, 1000) {
		if want := clock.Moment(5 + i*1_000_000); at != want {
			t.Fatalf("arrival %d is at %d, not %d", i, at, want)
		}
	}
}

func TestPoissonArrivalsHaveRateAndSpreadAndFollowFromTheSeed(t *testing.T) {
	schedule := contract.Schedule{Open: true, Rate: 1000, Poisson: true}
	all := times(schedule, 7, 20_000)
	if !slices.Equal(all, times(schedule, 7, 20_000)) || slices.Equal(all, times(schedule, 8, 20_000)) {
		t.Error("the arrivals do not follow from the seed")
	}
	mean, variance := 0.0, 0.0
	gap := func(i int) float64 { return float64(all[i]-all[i-1]) / 1e6 }
	for i := 1; i < len(all); i++ {
		mean += gap(i) / float64(len(all)-1)
	}
	for i := 1; i < len(all); i++ {
		variance += (gap(i) - mean) * (gap(i) - mean) / float64(len(all)-1)
	}
	// The variance of an exponential distribution is the square of its mean. Standard errors here: 0.007 and 0.02.
	if math.Abs(mean-1) > 0.03 || math.Abs(variance-1) > 0.1 {
		t.Errorf("mean %v, variance %v", mean, variance)
	}
}

func TestPausesKeepTheirBoundsAndReachThem(t *testing.T) {
	source := random(3, measured, 0)
	seen := map[time.Duration]bool{}
	for range 1000 {
		seen[pause(contract.Schedule{MinPause: 10, MaxPause: 13}, source)] = true
	}
	if len(seen) != 4 || !seen[10] || !seen[13] {
		t.Errorf("pauses are %v", seen)
	}
	if length := pause(contract.Schedule{MinPause: 8, MaxPause: 8}, source); length != 8 {
		t.Errorf("a fixed pause is %v", length)
	}
}

func TestUsersPhasesAndSeedsDrawDifferentNumbers(t *testing.T) {
	drawn := map[uint64]bool{}
	for _, source := range []uint64{
		random(1, measured, 0).Uint64(), random(1, measured, 1).Uint64(), random(1, warmUp, 0).Uint64(), random(2, measured, 0).Uint64(),
	} {
		drawn[source] = true
	}
	if len(drawn) != 4 {
		t.Error("two sources draw the same")
	}
}

func TestALimitGivesAsMuchAsItHas(t *testing.T) {
	count := newLimit(contract.Extent{Requests: 2}, 0)
	if !count.take(0) || !count.take(1<<40) || count.take(0) || count.take(0) {
		t.Error("a limit of two requests does not give two")
	}
	until := newLimit(contract.Extent{Duration: 10}, 100)
	if !until.take(109) || until.take(110) {
		t.Error("a limit of ten nanoseconds does not end after them")
	}
}
