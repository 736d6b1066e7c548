package contract

import (
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// ALPN of the protocols that have TLS.
var ALPN = map[string]string{
	"h1": "http/1.1", "h2": "h2", "h3": "h3", "grpc": "h2", "tls": "wirelab", "quic": "wirelab",
}

// Common has the fields of both roles' specs.
type Common struct {
	Protocol   string
	Address    netip.AddrPort
	ServerName string
	QlogDir    string
	// Threads is 0 if the spec leaves the choice to the library.
	Threads   int
	Transport Transport
}

// Secure says whether the protocol has TLS.
func (c *Common) Secure() bool { return ALPN[c.Protocol] != "" }

// HTTP says whether the protocol is a version of HTTP.
func (c *Common) HTTP() bool { return strings.HasPrefix(c.Protocol, "h") }

// Multiplexes says whether a connection carries several requests at a time.
func (c *Common) Multiplexes() bool {
	return slices.Contains([]string{"h2c", "h2", "h3", "quic", "grpcc", "grpc"}, c.Protocol)
}

// Transport settings; nil means the library's default.
type Transport struct {
	Congestion                                     *string
	StreamWindow, ConnectionWindow                 *uint64
	UDPSendBuffer, UDPReceiveBuffer, MaxUDPPayload *uint64
	GSO, GRO, FastOpen, NoDelay                    *bool
}

// Only refuses every setting that is set and not among these names.
func (t *Transport) Only(why string, names ...string) error {
	for name, set := range map[string]bool{
		"congestion": t.Congestion != nil, "stream_window": t.StreamWindow != nil,
		"connection_window": t.ConnectionWindow != nil, "udp_send_buffer": t.UDPSendBuffer != nil,
		"udp_receive_buffer": t.UDPReceiveBuffer != nil, "max_udp_payload": t.MaxUDPPayload != nil,
		"gso": t.GSO != nil, "gro": t.GRO != nil, "fast_open": t.FastOpen != nil, "no_delay": t.NoDelay != nil,
	} {
		if set && !slices.Contains(names, name) {
			return Refuse("transport: cannot honour `%s`: %s", name, why)
		}
	}
	return nil
}

// ReadSpec reads a spec's file.
func ReadSpec(path string) (*Fields, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Failed(Other, "reading the spec: %v", err)
	}
	spec := Parse(text)
	spec.Count("contract", Version, Version)
	return spec, spec.Err()
}

func readCommon(spec *Fields, protocols []string) Common {
	c := Common{Protocol: spec.Choose("protocol", protocols...), ServerName: spec.Text("server_name")}
	address, err := netip.ParseAddr(spec.Text("address"))
	if err != nil {
		spec.refuse("spec: `address`: %v", err)
	}
	c.Address = netip.AddrPortFrom(address, uint16(spec.Count("port", 0, math.MaxUint16)))
	if spec.Has("qlog_dir") {
		c.QlogDir = spec.Text("qlog_dir")
	}
	if spec.Has("threads") {
		c.Threads = int(spec.Count("threads", 1, math.MaxUint16))
	}
	if spec.Has("transport") {
		c.Transport = readTransport(spec.Inner("transport"))
	}
	if spec.Err() == nil && spec.Has("tls") != c.Secure() {
		spec.refuse("spec: `tls` must be there exactly where the protocol has TLS, and the protocol is %s", c.Protocol)
	}
	return c
}

func readTransport(f *Fields) Transport {
	size := func(name string) uint64 { return f.Count(name, 1, math.MaxInt64) }
	t := Transport{
		Congestion:       Optional(f, "congestion", func(n string) string { return f.Choose(n, "cubic", "bbr", "reno") }),
		StreamWindow:     Optional(f, "stream_window", size),
		ConnectionWindow: Optional(f, "connection_window", size),
		UDPSendBuffer:    Optional(f, "udp_send_buffer", size),
		UDPReceiveBuffer: Optional(f, "udp_receive_buffer", size),
		MaxUDPPayload:    Optional(f, "max_udp_payload", size),
		GSO:              Optional(f, "gso", f.Bool),
		GRO:              Optional(f, "gro", f.Bool),
		FastOpen:         Optional(f, "fast_open", f.Bool),
		NoDelay:          Optional(f, "no_delay", f.Bool),
	}
	f.End()
	return t
}
