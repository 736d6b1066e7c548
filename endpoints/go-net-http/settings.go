package main

import (
	"net/http"

	"wirelab/endpoint/contract"
)

// tcpSettings are the transport settings that this endpoint honours with every protocol.
var tcpSettings = []string{"congestion", "no_delay", "fast_open"}

const (
	// The connection's window at the start, which can only be raised, and the largest window (RFC 9113, section 6.9).
	initialWindow, largestWindow = 65_535, 1<<31 - 1
	// streams that a client may have open at a time: more than any load has, so that no request waits for it.
	streams = 100_000
)

// windows are bytes of credit that one side gives the other.
type windows struct{ stream, connection uint64 }

// speaks is the protocol for net/http: one version of HTTP, in clear text or not.
func speaks(protocol string) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "h1c" || protocol == "h1")
	p.SetHTTP2(protocol == "h2")
	p.SetUnencryptedHTTP2(protocol == "h2c")
	return p
}

// refuse says which settings cannot be honoured.
func refuse(c *contract.Common) error {
	if c.QlogDir != "" {
		return contract.Refuse("`qlog_dir`: it concerns QUIC, and the protocol is %s", c.Protocol)
	}
	if isHTTP2(c.Protocol) {
		return c.Transport.Only("it concerns UDP", append([]string{"stream_window", "connection_window"}, tcpSettings...)...)
	}
	return c.Transport.Only("HTTP/1.1 over TCP has no such thing", tcpSettings...)
}

// http2 is the configuration of HTTP/2 by the spec, and its windows. In a server, net/http takes the whole connection window;
// in a client, it takes the part above the initial window, which is onTop.
func http2(t *contract.Transport, defaults windows, onTop uint64) (*http.HTTP2Config, windows, error) {
	config, w := &http.HTTP2Config{MaxConcurrentStreams: streams}, defaults
	if t.StreamWindow != nil {
		if w.stream = *t.StreamWindow; w.stream > largestWindow {
			return nil, w, contract.Refuse("transport: `stream_window` = %d; HTTP/2 has at most %d", w.stream, largestWindow)
		}
		config.MaxReceiveBufferPerStream = int(w.stream)
	}
	if t.ConnectionWindow != nil {
		// net/http takes nothing smaller than the initial window.
		w.connection = *t.ConnectionWindow
		if least := initialWindow + onTop; w.connection < least || w.connection > largestWindow {
			return nil, w, contract.Refuse("transport: `connection_window` = %d; net/http can give %d to %d in this role",
				w.connection, least, largestWindow)
		}
		config.MaxReceiveBufferPerConnection = int(w.connection - onTop)
	}
	return config, w, nil
}

func (w windows) configured() contract.Configured {
	return contract.Configured{"stream_window": w.stream, "connection_window": w.connection}
}
