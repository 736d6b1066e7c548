package tlsside

import (
	"crypto/tls"
	"testing"
	"time"
)

func TestTheNewestTicketIsGivenOutFirstAndOnce(t *testing.T) {
	tickets := new(Tickets)
	arrival := &Arrival{tickets: tickets, came: make(chan struct{})}
	old, young := new(tls.ClientSessionState), new(tls.ClientSessionState)
	arrival.Put("", old)
	arrival.Put("", young)
	arrival.Put("", nil)
	for _, want := range []*tls.ClientSessionState{young, old} {
		if got, has := arrival.Get(""); !has || got != want {
			t.Errorf("expected another ticket; got one: %v", has)
		}
	}
	if _, has := arrival.Get(""); has || tickets.Len() != 0 {
		t.Error("a ticket was given out twice")
	}
	arrival.Wait(time.Hour) // returns, because a ticket came
}

func TestAFullStoreForgetsTheOldest(t *testing.T) {
	tickets := new(Tickets)
	all := make([]*tls.ClientSessionState, mostTickets+2)
	for i := range all {
		all[i] = new(tls.ClientSessionState)
		tickets.put(all[i])
	}
	for i := len(all) - 1; i >= 2; i-- {
		if tickets.take() != all[i] {
			t.Fatalf("ticket %d is another one", i)
		}
	}
	if tickets.take() != nil {
		t.Error("a ticket that should be forgotten is there")
	}
}
