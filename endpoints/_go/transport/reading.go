// Package transport adds up the counters of connections: round trips, packets, losses.
package transport

// Reading has the counters of one connection; nil means unknown.
type Reading struct {
	RoundTripMin, RoundTrip *uint64
	Sent, Lost, BytesLost   *uint64
	Window                  *uint64
}

// Known is a value that was read.
func Known(value uint64) *uint64 { return &value }

// Sampled is a value; 0 means no sample yet.
func Sampled(value uint64) *uint64 {
	if value == 0 {
		return nil
	}
	return &value
}

// since has the counts since an earlier reading of the same connection; other values stay.
func (r Reading) since(before Reading) Reading {
	r.Sent, r.Lost, r.BytesLost = less(r.Sent, before.Sent), less(r.Lost, before.Lost), less(r.BytesLost, before.BytesLost)
	return r
}

// A counter that ran backwards is unknown: QUIC takes wrong losses back.
func less(now, then *uint64) *uint64 {
	if now == nil || then == nil || *now < *then {
		return nil
	}
	return Known(*now - *then)
}
