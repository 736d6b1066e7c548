package main

import "wirelab/endpoint/contract"

const (
	// initialWindow is what HTTP/2 begins with, and the smallest that grpc-go can be set to (1.85, internal/transport).
	initialWindow, largestWindow = 65_535, 1<<31 - 1
)

// windows are bytes of credit that one side gives the other; 0 where they are grpc-go's to choose.
type windows struct{ stream, connection int32 }

// settings refuses what cannot be honoured, and returns the windows of the spec.
func settings(c *contract.Common) (windows, error) {
	if c.QlogDir != "" {
		return windows{}, contract.Refuse("`qlog_dir`: it concerns QUIC, and the protocol is %s", c.Protocol)
	}
	err := c.Transport.Only("it concerns UDP", "congestion", "no_delay", "fast_open", "stream_window", "connection_window")
	if err != nil {
		return windows{}, err
	}
	stream, err := window("stream_window", c.Transport.StreamWindow)
	if err != nil {
		return windows{}, err
	}
	connection, err := window("connection_window", c.Transport.ConnectionWindow)
	return windows{stream, connection}, err
}

func window(name string, wanted *uint64) (int32, error) {
	if wanted == nil {
		return 0, nil
	}
	if *wanted < initialWindow || *wanted > largestWindow {
		return 0, contract.Refuse("transport: `%s` = %d; grpc-go can give %d to %d", name, *wanted, initialWindow, largestWindow)
	}
	return int32(*wanted), nil
}

// configured has the settings active from the first byte. If neither is set, grpc-go raises both by its own estimate.
func (w windows) configured() contract.Configured {
	return contract.Configured{
		"stream_window": max(w.stream, initialWindow), "connection_window": max(w.connection, initialWindow),
	}
}
