// Package httpload sends the spec's request over a connection of a library that has net/http's RoundTripper.
package httpload

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/pattern"
)

// Template is the request, made once.
type Template struct {
	request http.Request
	body    uint64
}

// Fields that the libraries write or leave out by themselves.
var ofLibrary = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Connection", "Keep-Alive", "Upgrade", "Te", "Trailer",
	"Expect",
}

// NewTemplate takes a spec's request, or refuses a field that it cannot honour.
func NewTemplate(spec *contract.ClientSpec) (*Template, error) {
	wanted := spec.Request
	target, err := url.ParseRequestURI(wanted.Path)
	if err != nil || !strings.HasPrefix(wanted.Path, "/") {
		return nil, contract.Refuse("request: `path` = %q is not a path", wanted.Path)
	}
	target.Scheme, target.Host = "http", spec.ServerName
	if spec.Secure() {
		target.Scheme = "https"
	}
	if target.RequestURI() != wanted.Path {
		return nil, contract.Refuse("request: `path` = %q would be sent as %q", wanted.Path, target.RequestURI())
	}
	// Neither library may add fields: other clients send none.
	header := http.Header{"User-Agent": {""}}
	for _, field := range wanted.Headers {
		name := textproto.CanonicalMIMEHeaderKey(field[0])
		for _, own := range ofLibrary {
			if name == own {
				return nil, contract.Refuse("request: `headers`: the library writes `%s` itself", field[0])
			}
		}
		if name == "User-Agent" && header.Get(name) == "" {
			header.Del(name)
		}
		header.Add(name, field[1])
	}
	return &Template{http.Request{
		Method: wanted.Method, URL: target, Host: spec.ServerName, Header: header, ContentLength: int64(wanted.BodySize),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, wanted.BodySize}, nil
}

// HasBody says whether the requests have a body.
func (t *Template) HasBody() bool { return t.body > 0 }

// traced is the context of a lane's requests, whose trace notes the first byte of a response.
type traced struct {
	context.Context
	firstByte atomic.Int64
}

func of(scratch *load.Scratch) *traced {
	if own, is := scratch.Own.(*traced); is {
		return own
	}
	own := new(traced)
	trace := httptrace.ClientTrace{GotFirstResponseByte: func() { own.firstByte.Store(int64(clock.Now())) }}
	own.Context = httptrace.WithClientTrace(context.Background(), &trace)
	scratch.Own = own
	return own
}

// next is one more request, until a deadline, and the function to call at its end.
func (t *Template) next(lane *traced, by clock.Moment) (*http.Request, context.CancelFunc) {
	lane.firstByte.Store(0)
	ctx, cancel := context.WithDeadline(lane, by.Time())
	request := t.request.WithContext(ctx)
	if t.body > 0 {
		request.Body = pattern.NewReader(t.body)
	}
	return request, cancel
}
