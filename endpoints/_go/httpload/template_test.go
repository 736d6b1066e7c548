package httpload

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

func spec(path string, headers ...[2]string) *contract.ClientSpec {
	return &contract.ClientSpec{
		Common:  contract.Common{Protocol: "h1c", ServerName: "server.wirelab.test", Address: netip.MustParseAddrPort("127.0.0.1:1")},
		Request: contract.Request{Method: "POST", Path: path, BodySize: 5, Headers: headers},
	}
}

func TestWhatWouldNotBeSentAsItIsIsUnsupported(t *testing.T) {
	for _, c := range []*contract.ClientSpec{
		spec(""), spec("bytes/5"), spec("http://elsewhere/"), spec("/a b"),
		spec("/", [2]string{"content-length", "3"}), spec("/", [2]string{"HOST", "x"}), spec("/", [2]string{"Connection", "close"}),
	} {
		_, err := NewTemplate(c)
		if _, is := errors.AsType[*contract.Unsupported](err); !is {
			t.Errorf("%q %v: %v", c.Request.Path, c.Request.Headers, err)
		}
	}
}

// to sends every request to the server of a test, whatever host it names.
type to struct {
	http.Transport
	host string
}

func (t *to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.host
	return t.Transport.RoundTrip(r)
}

func TestARequestHasWhatTheSpecSaysAndNothingElse(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = w.Write([]byte("answer"))
	}))
	defer server.Close()
	template, err := NewTemplate(spec("/%2e%2e/a?b=c%20d", [2]string{"x-one", "1"}, [2]string{"user-agent", "mine"}))
	if err != nil {
		t.Fatal(err)
	}
	connection := &to{host: strings.TrimPrefix(server.URL, "http://")}
	connection.DisableCompression = true
	scratch := &load.Scratch{Buffer: make([]byte, 4)}
	seen := ""
	for range 2 {
		seen = ""
		start := clock.Now()
		answer, err := template.Exchange(connection, scratch, start.Add(time.Minute), func(b []byte) { seen += string(b) })
		if err != nil || answer.Status != 200 || answer.BytesIn != 6 || seen != "answer" {
			t.Fatalf("answered %+v, %q, %v", answer, seen, err)
		}
		if answer.FirstByte <= start || answer.LastByte < answer.FirstByte {
			t.Errorf("the moments are %d, %d, %d", start, answer.FirstByte, answer.LastByte)
		}
	}
	if got.RequestURI != "/%2e%2e/a?b=c%20d" || got.Host != "server.wirelab.test" || string(body) != "\x00\x01\x02\x03\x04" {
		t.Errorf("received %s for %s with %q", got.RequestURI, got.Host, body)
	}
	want := http.Header{"X-One": {"1"}, "User-Agent": {"mine"}, "Content-Length": {"5"}}
	if len(got.Header) != len(want) || got.Header.Get("User-Agent") != "mine" || got.Header.Get("X-One") != "1" {
		t.Errorf("the fields are %v", got.Header)
	}
}

func TestADeadlineThatPassesIsATimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	template, err := NewTemplate(spec("/"))
	if err != nil {
		t.Fatal(err)
	}
	connection := &to{host: strings.TrimPrefix(server.URL, "http://")}
	_, err = template.Exchange(connection, &load.Scratch{Buffer: make([]byte, 4)}, clock.Now().Add(time.Millisecond), nil)
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("%v is no passed deadline", err)
	}
}
