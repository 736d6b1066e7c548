package transport

import (
	"encoding/json"
	"testing"
)

func expect(t *testing.T, accounts *Accounts, want string) {
	t.Helper()
	report, err := json.Marshal(accounts.Report())
	if err != nil || string(report) != want {
		t.Errorf("the report is %s, not %s; %v", report, want, err)
	}
}

func TestWhatWasCountedBeforeThePeriodIsTakenOffAndRoundTripsAreNot(t *testing.T) {
	var accounts Accounts
	reading := Reading{RoundTrip: Known(90), Sent: Known(40), Lost: Known(1), BytesLost: Known(100), Window: Known(7)}
	kept := accounts.Enter(func() Reading { return reading })
	accounts.Enter(func() Reading { return reading }).Leave()
	accounts.Begin()
	reading = Reading{RoundTrip: Known(30), RoundTripMin: Known(20), Sent: Known(50), Lost: Known(1), BytesLost: Known(100)}
	second := Reading{RoundTrip: Known(50), Sent: Known(5), Lost: Known(2), BytesLost: Known(300), Window: Known(9)}
	ended := accounts.Enter(func() Reading { return second })
	ended.Leave()
	ended.Leave()
	want := `{"connections":2,"round_trip_min_ns":20,"round_trip_ns":40,"packets_sent":15,"packets_lost":2,"bytes_lost":300,"congestion_window":9}`
	expect(t, &accounts, want)
	kept.Leave()
	expect(t, &accounts, want)
}

func TestWhatOneConnectionDoesNotKnowIsUnknownOfAll(t *testing.T) {
	var accounts Accounts
	expect(t, &accounts, `{"connections":0}`)
	accounts.Enter(func() Reading { return Reading{Sent: Known(3), Lost: Known(0)} })
	expect(t, &accounts, `{"connections":1,"packets_sent":3,"packets_lost":0}`)
	accounts.Enter(func() Reading { return Reading{Sent: Known(4)} })
	expect(t, &accounts, `{"connections":2,"packets_sent":7}`)
}

func TestACounterThatRanBackIsUnknown(t *testing.T) {
	var accounts Accounts
	lost := uint64(5)
	accounts.Enter(func() Reading { return Reading{Lost: Known(lost)} })
	accounts.Begin()
	lost = 4
	expect(t, &accounts, `{"connections":1}`)
}
