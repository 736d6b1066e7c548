package main

import (
	"math"

	"github.com/quic-go/quic-go"

	"wirelab/endpoint/transport"
)

type reading = transport.Reading

// readingOf has quic-go's counters of a connection, open or not.
func readingOf(connection *quic.Conn) reading {
	stats := connection.ConnectionStats()
	r := reading{
		RoundTrip: transport.Sampled(uint64(stats.SmoothedRTT)),
		Sent:      transport.Known(stats.PacketsSent),
		Lost:      transport.Known(stats.PacketsLost),
		BytesLost: transport.Known(stats.BytesLost),
		Window:    transport.Sampled(stats.CongestionWindow),
	}
	if stats.MinRTT < math.MaxInt64 {
		r.RoundTripMin = transport.Sampled(uint64(stats.MinRTT))
	}
	return r
}
