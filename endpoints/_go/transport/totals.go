package transport

// Report is the sum over connections, in the contract's form.
type Report struct {
	Connections      uint64  `json:"connections"`
	RoundTripMinNs   *uint64 `json:"round_trip_min_ns,omitempty"`
	RoundTripNs      *uint64 `json:"round_trip_ns,omitempty"`
	PacketsSent      *uint64 `json:"packets_sent,omitempty"`
	PacketsLost      *uint64 `json:"packets_lost,omitempty"`
	BytesLost        *uint64 `json:"bytes_lost,omitempty"`
	CongestionWindow *uint64 `json:"congestion_window,omitempty"`
}

// totals is the sum while it grows.
type totals struct {
	connections           uint64
	roundTrips, sampled   uint64
	roundTripMin, window  *uint64
	sent, lost, bytesLost counter
}

// counter is a sum; it is unknown as soon as one part is unknown.
type counter struct {
	sum     uint64
	unknown bool
}

func (c *counter) add(part *uint64) {
	if part == nil {
		c.unknown = true
	} else {
		c.sum += *part
	}
}

func (c *counter) report() *uint64 {
	if c.unknown {
		return nil
	}
	return Known(c.sum)
}

func (t *totals) add(r Reading) {
	t.connections++
	if r.RoundTrip != nil {
		t.roundTrips += *r.RoundTrip
		t.sampled++
	}
	if r.RoundTripMin != nil && (t.roundTripMin == nil || *r.RoundTripMin < *t.roundTripMin) {
		t.roundTripMin = r.RoundTripMin
	}
	if r.Window != nil && (t.window == nil || *r.Window > *t.window) {
		t.window = r.Window
	}
	t.sent.add(r.Sent)
	t.lost.add(r.Lost)
	t.bytesLost.add(r.BytesLost)
}

func (t *totals) report() *Report {
	r := &Report{Connections: t.connections}
	if t.connections == 0 {
		return r
	}
	r.RoundTripMinNs, r.CongestionWindow = t.roundTripMin, t.window
	if t.sampled > 0 {
		r.RoundTripNs = Known(t.roundTrips / t.sampled)
	}
	r.PacketsSent, r.PacketsLost, r.BytesLost = t.sent.report(), t.lost.report(), t.bytesLost.report()
	return r
}
