package main

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/httpload"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

const (
	// shortestIdle is the shortest idle time-out: the default that RFC 9308, section 3.2, recommends.
	shortestIdle = 30 * time.Second
	// tokens for the validation of addresses (RFC 9000, section 8.1.3) that are kept where anything may be reused.
	tokens = 4096
)

// driver opens connections of quic-go, each with a socket of its own.
type driver struct {
	spec     *contract.ClientSpec
	settings *settings
	tls      *tlsside.Client
	qlog     *qlog
	accounts transport.Accounts
	// The request: of HTTP/3, or raw.
	template *httpload.Template
	http3    http3.Transport
	raw      *rawRequest

	lock sync.Mutex
	// The active settings; the negotiated values are those of the first connection.
	configured contract.Configured
	seen       bool
}

func newDriver(spec *contract.ClientSpec) (*driver, error) {
	d := &driver{spec: spec}
	var err error
	if d.settings, err = newSettings(&spec.Transport, max(shortestIdle, 2*min(spec.RequestTimeout, time.Hour))); err != nil {
		return nil, err
	}
	if err := d.takeRequest(); err != nil {
		return nil, err
	}
	if d.tls, err = tlsside.NewClient(spec); err != nil {
		return nil, err
	}
	config := &d.settings.quic
	config.HandshakeIdleTimeout = min(spec.ConnectTimeout, time.Hour) // the deadline of Dial comes first
	config.MaxIncomingStreams = -1
	if spec.Resumption != "none" {
		config.TokenStore = quic.NewLRUTokenStore(1, tokens)
	}
	if spec.QlogDir != "" {
		d.qlog = &qlog{folder: spec.QlogDir}
		config.Tracer = d.qlog.trace
	}
	// Tried once now, to refuse a setting that cannot be honoured before the measurement.
	udp, quic, err := d.open(d.spec.Address)
	if err != nil {
		return nil, err
	}
	defer udp.Close()
	prepare(quic)
	d.configured = d.settings.configured(udp)
	return d, quic.Close()
}

// open makes a socket that is connected to a server.
func (d *driver) open(server netip.AddrPort) (*socket.UDP, *quic.Transport, error) {
	udp, err := socket.DialUDP(server)
	if err != nil {
		return nil, nil, failed("making a UDP socket", err)
	}
	quic, err := d.settings.transport(udp)
	if err != nil {
		_ = udp.Close()
	}
	return udp, quic, err
}

// Dial opens a connection. Where 0-RTT is asked for and a ticket is there it returns at once, ready for early data.
func (d *driver) Dial(ctx context.Context) (load.Opened, *contract.Failure) {
	server := d.spec.NextServer()
	attempt := "connecting to " + server.String()
	udp, transport, err := d.open(server)
	if err != nil {
		return load.Opened{}, failed(attempt, err)
	}
	dial := transport.Dial
	var resumes func(early bool)
	if d.spec.Resumption == "zero_rtt" {
		dial = transport.DialEarly
		if d.spec.PerRequest { // persistent connections have no request yet
			resumes = hold(udp)
			release := context.AfterFunc(ctx, udp.Release)
			defer release()
		}
	}
	config, ticket := d.tls.Connection(resumes)
	connection, err := dial(ctx, net.UDPAddrFromAddrPort(server), config, &d.settings.quic)
	if err != nil {
		udp.Release()
		_, _ = transport.Close(), udp.Close()
		return load.Opened{}, failed(attempt, err)
	}
	l := &link{driver: d, quic: connection, transport: transport, udp: udp, ticket: ticket, ready: clock.Now()}
	l.account = d.accounts.Enter(func() reading { return readingOf(connection) })
	if failure := l.negotiated(); failure != nil {
		l.Abandon()
		return load.Opened{}, failure
	}
	opened := load.Opened{Ready: l.ready}
	if d.spec.HTTP() {
		h := &http3Connection{link: l}
		h.client.Store(d.http3.NewClientConn(connection))
		opened.Connection = h
	} else {
		opened.Connection = &rawConnection{l}
	}
	return opened, nil
}

// hold keeps the first flight back until the request is handed over, so that it travels there: quic-go begins to send
// while it dials, and with a short round trip the handshake could be complete before the request is written. The
// argument of the returned function is whether early data follows.
func hold(udp *socket.UDP) func(early bool) {
	udp.Hold()
	return func(early bool) {
		if !early {
			udp.Release()
		}
	}
}

// see notes the negotiated values of the first connection.
func (d *driver) see(state *quic.ConnectionState) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if !d.seen {
		d.seen = true
		d.configured.Add(tlsside.Facts(&state.TLS))
		d.configured["gso"] = state.GSO
	}
}

func (d *driver) Configured() contract.Configured {
	d.lock.Lock()
	defer d.lock.Unlock()
	return maps.Clone(d.configured)
}

func (d *driver) Tickets() int                  { return d.tls.Stored() }
func (d *driver) Accounts() *transport.Accounts { return &d.accounts }

func (d *driver) Close() {
	if d.qlog != nil {
		d.qlog.wait()
	}
}
