package main

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"sync"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/fault"
	"wirelab/endpoint/httpload"
	"wirelab/endpoint/load"
	"wirelab/endpoint/socket"
	"wirelab/endpoint/tlsside"
	"wirelab/endpoint/transport"
)

// windowsOfClients is what net/http gives as a client.
var windowsOfClients = windows{4 << 20, 1<<30 + initialWindow}

// driver opens connections of net/http, each on its own and outside of any pool.
type driver struct {
	spec      *contract.ClientSpec
	template  *httpload.Template
	options   socket.TCP
	tls       *tlsside.Client
	transport http.Transport
	accounts  transport.Accounts

	lock sync.Mutex
	// The active settings; the sockets and negotiated values are those of the first connection.
	configured contract.Configured
	seen       bool
}

func newDriver(spec *contract.ClientSpec) (*driver, error) {
	if err := refuse(&spec.Common); err != nil {
		return nil, err
	}
	if spec.Resumption == "zero_rtt" {
		return nil, contract.Refuse("`resumption` = \"zero_rtt\": Go's TLS has no 0-RTT over TCP")
	}
	d := &driver{spec: spec, configured: contract.Configured{}}
	var err error
	if d.template, err = httpload.NewTemplate(spec); err != nil {
		return nil, err
	}
	if d.options, err = socket.TCPOfClients(&spec.Transport); err != nil {
		return nil, err
	}
	if spec.TLS != nil {
		if d.tls, err = tlsside.NewClient(spec); err != nil {
			return nil, err
		}
	}
	var given windows
	if d.transport.HTTP2, given, err = http2(&spec.Transport, windowsOfClients, initialWindow); err != nil {
		return nil, err
	}
	if isHTTP2(spec.Protocol) {
		d.configured = given.configured()
	}
	d.transport.Protocols = speaks(spec.Protocol)
	d.transport.DisableCompression = true
	d.transport.DialContext = d.dialTCP
	d.transport.DialTLSContext = d.dialTLS
	return d, nil
}

// dialing is the key of a connection that is being opened, in the context that net/http passes to the dialer.
type dialing struct{}

// Dial opens a connection.
func (d *driver) Dial(ctx context.Context) (load.Opened, *contract.Failure) {
	c, server := &connection{driver: d}, d.spec.NextServer().String()
	scheme := "http"
	if d.tls != nil {
		scheme = "https"
	}
	http, err := d.transport.NewClientConn(context.WithValue(ctx, dialing{}, c), scheme, server)
	if err != nil {
		return load.Opened{}, fault.Of("connecting to "+server, err)
	}
	c.http = http
	opened := load.Opened{Connection: c, Ready: c.ready}
	// With Fast Open the moment of the connection is invisible.
	if !d.options.FastOpen {
		opened.Connected = c.connected
	}
	return opened, nil
}

func (d *driver) dialTCP(ctx context.Context, _, address string) (net.Conn, error) {
	tcp, err := d.options.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c := ctx.Value(dialing{}).(*connection)
	c.connected = clock.Now()
	if d.tls == nil {
		d.see(tcp, nil)
	}
	c.tcp = socket.Meter(tcp, &d.accounts)
	return c.tcp, nil
}

func (d *driver) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	tcp, err := d.dialTCP(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := ctx.Value(dialing{}).(*connection)
	var config *tls.Config
	config, c.ticket = d.tls.Connection(nil)
	secure := tls.Client(tcp, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, err
	}
	c.ready = clock.Now()
	state := secure.ConnectionState()
	if failure := d.tls.Check(&state); failure != nil {
		_ = secure.Close()
		return nil, failure
	}
	c.handshake = tlsside.Handshake(&state)
	d.see(c.tcp.TCPConn, &state)
	return secure, nil
}

// see notes the active settings of the first connection.
func (d *driver) see(tcp *net.TCPConn, state *tls.ConnectionState) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.seen {
		return
	}
	d.seen = true
	if activeSettings, err := d.options.ActiveSettings(tcp); err == nil {
		d.configured.Add(activeSettings)
	}
	if state != nil {
		d.configured.Add(tlsside.Facts(state))
	}
}

func (d *driver) Configured() contract.Configured {
	d.lock.Lock()
	defer d.lock.Unlock()
	return maps.Clone(d.configured)
}

func (d *driver) Tickets() int {
	if d.tls == nil {
		return 0
	}
	return d.tls.Stored()
}

func (d *driver) Accounts() *transport.Accounts { return &d.accounts }
func (d *driver) Close()                        {}
