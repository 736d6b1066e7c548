package main

import (
	"context"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/socket"
)

const (
	// quic-go's defaults: windows that grow from the first size to the second, and packets from the
	// first size on, up to the second by path MTU discovery.
	streamWindow, streamWindowMost         = 512 << 10, 6 << 20
	connectionWindow, connectionWindowMost = 768 << 10, 15 << 20
	firstPayload, payloadMost              = 1280, 1452
	// leastPayload of QUIC (RFC 9000, section 14).
	leastPayload = 1200
	// mostWindow of QUIC (RFC 9000, section 16).
	mostWindow = 1<<62 - 1
)

// settings are the transport settings of a spec, with what quic-go makes of them.
type settings struct {
	spec *contract.Transport
	quic quic.Config
	gso  bool
}

// newSettings takes every setting, or says which one cannot be honoured. idle ends a connection that nothing arrives on.
func newSettings(t *contract.Transport, idle time.Duration) (*settings, error) {
	s := &settings{spec: t, gso: t.GSO == nil || *t.GSO}
	if err := t.Only("it is an option of TCP", "congestion", "stream_window", "connection_window", "udp_send_buffer",
		"udp_receive_buffer", "max_udp_payload", "gso", "gro"); err != nil {
		return nil, err
	}
	if t.Congestion != nil && *t.Congestion != "reno" {
		return nil, contract.Refuse("transport: `congestion` = %q: quic-go has Reno alone", *t.Congestion)
	}
	if t.GRO != nil && *t.GRO {
		return nil, contract.Refuse("transport: `gro`: quic-go does not receive joined datagrams")
	}
	for field, window := range map[string]*uint64{"stream_window": t.StreamWindow, "connection_window": t.ConnectionWindow} {
		if window != nil && *window > mostWindow {
			return nil, contract.Refuse("transport: `%s` = %d: QUIC has at most %d", field, *window, uint64(mostWindow))
		}
	}
	s.quic.MaxIdleTimeout = idle
	// A window that is set is that from the beginning, and does not grow.
	if t.StreamWindow != nil {
		s.quic.InitialStreamReceiveWindow, s.quic.MaxStreamReceiveWindow = *t.StreamWindow, *t.StreamWindow
	}
	if t.ConnectionWindow != nil {
		s.quic.InitialConnectionReceiveWindow, s.quic.MaxConnectionReceiveWindow = *t.ConnectionWindow, *t.ConnectionWindow
	}
	if t.MaxUDPPayload != nil {
		if *t.MaxUDPPayload < leastPayload || *t.MaxUDPPayload > payloadMost {
			return nil, contract.Refuse("transport: `max_udp_payload` = %d: quic-go sends %d to %d bytes", *t.MaxUDPPayload,
				leastPayload, payloadMost)
		}
		s.quic.InitialPacketSize, s.quic.DisablePathMTUDiscovery = uint16(*t.MaxUDPPayload), true
	}
	if !s.gso {
		return s, os.Setenv("QUIC_GO_DISABLE_GSO", "true")
	}
	return s, nil
}

// transport is quic-go's on a socket, with the buffers of the spec.
func (s *settings) transport(udp *socket.UDP) (*quic.Transport, error) {
	if s.gso && s.spec.GSO != nil && !udp.Segments() {
		return nil, contract.Refuse("transport: `gso`: the kernel cannot segment UDP datagrams (Linux 4.18 can)")
	}
	t := &quic.Transport{Conn: udp}
	if s.spec.UDPReceiveBuffer == nil && s.spec.UDPSendBuffer == nil {
		return t, nil
	}
	prepare(t)
	return t, udp.SetBuffers(s.spec)
}

// prepare makes quic-go set the options of its socket, buffer sizes among them, which it does when it first uses it. This
// is the shortest use: it reads nothing.
func prepare(t *quic.Transport) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, _ = t.ReadNonQUICPacket(now, nil)
}

// configured has the active settings of a socket that quic-go has prepared.
func (s *settings) configured(udp *socket.UDP) contract.Configured {
	c := udp.Buffers()
	c["congestion"] = "reno"
	c["gso"] = s.gso && udp.Segments()
	c["gro"] = false
	c["initial_udp_payload"], c["max_udp_payload"] = firstPayload, payloadMost
	if s.spec.MaxUDPPayload != nil {
		c["initial_udp_payload"], c["max_udp_payload"] = *s.spec.MaxUDPPayload, *s.spec.MaxUDPPayload
	}
	window := func(name string, set *uint64, first, most uint64) {
		if set != nil {
			first, most = *set, *set
		}
		c[name], c[name+"_most"] = first, most
	}
	window("stream_window", s.spec.StreamWindow, streamWindow, streamWindowMost)
	window("connection_window", s.spec.ConnectionWindow, connectionWindow, connectionWindowMost)
	return c
}
