package contract

import (
	"math"
	"net/netip"
	"sync/atomic"
	"time"
)

// ClientSpec is the spec of a client.
type ClientSpec struct {
	Common
	// Addresses are those of all servers, where the name has several; Address is the first of them.
	Addresses []netip.Addr
	// Discovers: Address belongs to a control plane, which knows the servers of ServerName.
	Discovers  bool
	TLS        *ClientTLS
	Request    Request
	PerRequest bool
	// Connections and Streams are those of persistent connections.
	Connections, Streams           int
	Schedule                       Schedule
	Extent                         Extent
	WarmUp                         *Extent
	Resumption                     string
	ConnectTimeout, RequestTimeout time.Duration
	Seed                           uint64
	Histograms                     bool
	Results                        string

	// opened counts the connections, which go to the servers in turn.
	opened atomic.Uint64
}

// NextServer is where the next connection goes.
func (s *ClientSpec) NextServer() netip.AddrPort {
	if len(s.Addresses) == 0 {
		return s.Address
	}
	turn := (s.opened.Add(1) - 1) % uint64(len(s.Addresses))
	return netip.AddrPortFrom(s.Addresses[turn], s.Address.Port())
}

// ClientTLS is a client's trust.
type ClientTLS struct {
	TrustAnchor, KeyLog string
	Verify              bool
}

// Request is one request, repeated.
type Request struct {
	Method, Path string
	BodySize     uint64
	Headers      [][2]string
	Expect       *Expect
}

// Expect describes a right response.
type Expect struct {
	Status   int
	BodySize uint64
	SHA256   string
}

// Schedule says when requests are sent: a closed loop of workers, or an open one of arrivals.
type Schedule struct {
	Open bool
	// Workers of a closed loop, and the bounds of the pause between a response and the next request.
	Workers            int
	MinPause, MaxPause uint64
	Pauses             bool
	// Rate of arrivals per second of an open loop, at equal intervals or random ones.
	Rate    float64
	Poisson bool
}

// Extent is a number of requests, or a duration where that is 0.
type Extent struct {
	Requests uint64
	Duration time.Duration
}

// ReadClientSpec takes every field of a spec, or says which one it cannot honour.
func ReadClientSpec(spec *Fields, protocols []string) (*ClientSpec, error) {
	s := &ClientSpec{Common: readCommon(spec, protocols), Resumption: "none"}
	if spec.Has("addresses") {
		s.Addresses = taken[[]netip.Addr](spec, "addresses", "lists of addresses")
	}
	s.Discovers = spec.Has("discovers") && spec.Bool("discovers")
	s.readTLS(spec)
	s.Request = readRequest(spec.Inner("request"))
	s.readConnections(spec.Inner("connections"))
	s.Schedule = readSchedule(spec.Inner("schedule"))
	s.Extent = readExtent(spec.Inner("extent"))
	s.WarmUp = Optional(spec, "warm_up", func(name string) Extent { return readExtent(spec.Inner(name)) })
	timeouts := spec.Inner("timeouts")
	s.ConnectTimeout, s.RequestTimeout = readDuration(timeouts, "connect_ns"), readDuration(timeouts, "request_ns")
	timeouts.End()
	s.Seed = spec.Count("seed", 0, math.MaxUint64)
	s.Histograms = spec.Choose("recording", "samples", "histograms") == "histograms"
	s.Results = spec.Text("results")
	spec.End()
	return s, spec.Err()
}

func (s *ClientSpec) readTLS(spec *Fields) {
	if spec.Has("resumption") {
		s.Resumption = spec.Choose("resumption", "none", "resume", "zero_rtt")
	}
	if spec.Err() == nil && s.Resumption != "none" && !s.Secure() {
		spec.refuse("spec: `resumption`: %s has no sessions to resume", s.Protocol)
	}
	if !spec.Has("tls") {
		return
	}
	f := spec.Inner("tls")
	s.TLS = &ClientTLS{Verify: f.Bool("verify")}
	if f.Has("trust_anchor") {
		s.TLS.TrustAnchor = f.Text("trust_anchor")
	}
	if f.Has("key_log") {
		s.TLS.KeyLog = f.Text("key_log")
	}
	f.End()
}

func readRequest(f *Fields) Request {
	r := Request{Method: f.Text("method"), Path: f.Text("path"), BodySize: f.Count("body_size", 0, math.MaxInt64)}
	if f.Has("headers") {
		r.Headers = taken[[][2]string](f, "headers", "pairs of name and value")
	}
	r.Expect = Optional(f, "expect", func(name string) Expect {
		e := f.Inner(name)
		expect := Expect{int(e.Count("status", 0, math.MaxUint16)), e.Count("body_size", 0, math.MaxInt64), e.Text("sha256")}
		e.End()
		return expect
	})
	f.End()
	return r
}

func (s *ClientSpec) readConnections(f *Fields) {
	s.PerRequest = f.Choose("policy", "per_request", "persistent") == "per_request"
	if !s.PerRequest && f.Err() == nil {
		s.Connections = int(f.Count("connections", 1, math.MaxInt32))
		s.Streams = int(f.Count("streams", 1, math.MaxInt32))
		if s.Streams > 1 && !s.Multiplexes() {
			f.refuse("%s: `streams` = %d; %s has one request at a time on a connection", f.where, s.Streams, s.Protocol)
		}
	}
	f.End()
}
