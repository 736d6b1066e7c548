package clock

import (
	"math"
	"testing"
	"time"
)

func TestAWaitEndsAtItsMomentOrLaterNeverBefore(t *testing.T) {
	var timer Timer
	defer timer.Close()
	for _, length := range []time.Duration{-time.Second, 0, time.Microsecond, 100 * time.Microsecond, 3 * time.Millisecond, 200 * time.Microsecond} {
		at := Now().Add(length)
		timer.Until(at)
		if now := Now(); now < at {
			t.Errorf("a wait of %v ended %d ns early", length, at-now)
		}
	}
}

func TestAMomentBeyondTheEndOfTheClockIsItsEnd(t *testing.T) {
	if at := Now().Add(math.MaxInt64); at != math.MaxInt64 {
		t.Errorf("it is %d", at)
	}
}

func TestNoMomentIsZero(t *testing.T) {
	if Now() <= 0 || Now().Time().IsZero() {
		t.Error("a moment is 0, which stands for a time that did not happen")
	}
}
