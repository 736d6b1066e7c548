// Package transport adds up what connections say of themselves: round trips, packets, losses.
package transport

// Reading is what one connection says. What is nil is not known.
type Reading struct {
	RoundTripMin, RoundTrip *uint64
	Sent, Lost, BytesLost   *uint64
	Window                  *uint64
}

// Known is a value that was read.
func Known(value uint64) *uint64 { return &value }

// Sampled is a value for which 0 means that there was none yet.
func Sampled(value uint64) *uint64 {
	if value == 0 {
		return nil
	}
	return &value
}

// since is what was counted since an earlier reading of the same connection; what is no counter stays.
func (r Reading) since(before Reading) Reading {
	r.Sent, r.Lost, r.BytesLost = less(r.Sent, before.Sent), less(r.Lost, before.Lost), less(r.BytesLost, before.BytesLost)
	return r
}

// A counter that ran back is not known any more: QUIC takes losses back that were none.
func less(now, then *uint64) *uint64 {
	if now == nil || then == nil || *now < *then {
		return nil
	}
	return Known(*now - *then)
}
