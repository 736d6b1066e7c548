package site

import (
	"io"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/heron"
	"wirelab/endpoint/pattern"
)

const (
	// longestDelay that a client may ask for, in microseconds: an hour.
	longestDelay = 3_600_000_000
	// largestBody that a client may ask for.
	largestBody = 1 << 40
)

// Site answers the requests of every protocol alike.
type Site struct {
	documents          map[string][]byte
	pages              bool
	echo, bytes, delay bool
	heron              bool
	answered           atomic.Uint64
	timers             sync.Pool
	buffers            sync.Pool
}

// New takes what the spec asks for. It loads the documents, so it takes a moment.
func New(spec *contract.ServerSpec) (*Site, error) {
	s := &Site{
		echo: spec.Wants("echo"), bytes: spec.Wants("bytes"), delay: spec.Wants("delay"), heron: spec.Wants("heron"),
		pages: spec.Wants("pages"),
	}
	s.timers.New = func() any { return new(clock.Timer) }
	s.buffers.New = func() any { return new([64 * 1024]byte) }
	var err error
	if spec.DocumentRoot != "" {
		s.documents, err = loadDocuments(spec.DocumentRoot)
	}
	return s, err
}

// Answered is how many requests were answered so far.
func (s *Site) Answered() uint64 { return s.answered.Load() }

// contentTypes of a page's files, by their endings: the contract's table.
var contentTypes = map[string]string{
	".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".jpg": "image/jpeg", ".woff2": "font/woff2",
}

// ServeHTTP answers with the length, the body, and the type of a page's files. Other servers send no further field, and
// compared cells must send the same.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrival := clock.Now()
	header := w.Header()
	header["Date"], header["Content-Type"] = nil, nil
	s.answered.Add(1)
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case s.echo && r.URL.Path == "/echo":
		s.serveEcho(w, r)
	case r.Method != http.MethodGet:
		status(w, http.StatusMethodNotAllowed)
	case s.bytes && kind == "bytes":
		serveNumber(w, rest, largestBody, func(size uint64) {
			setLength(header, size)
			_ = pattern.Write(w, size) // the client reports a broken connection
		})
	case s.delay && kind == "delay":
		serveNumber(w, rest, longestDelay, func(delay uint64) {
			s.Wait(arrival, delay)
			status(w, http.StatusOK)
		})
	case s.heron && kind == "heron":
		number, is := heron.Number(r.URL.Path)
		root := heron.Root(number)
		if !is || math.IsNaN(root) {
			status(w, http.StatusBadRequest)
			return
		}
		text := heron.Text(root)
		setLength(header, uint64(len(text)))
		_, _ = io.WriteString(w, text)
	default:
		document, found := s.documents[r.URL.Path]
		if !found {
			status(w, http.StatusNotFound)
			return
		}
		if kind, is := contentTypes[path.Ext(r.URL.Path)]; is && s.pages {
			header.Set("Content-Type", kind)
		}
		setLength(header, uint64(len(document)))
		_, _ = w.Write(document)
	}
}

func (s *Site) serveEcho(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		status(w, http.StatusMethodNotAllowed)
		return
	}
	// The body goes back as it comes. Only HTTP/1.1 needs this setting; the others return that it does not apply.
	_ = http.NewResponseController(w).EnableFullDuplex()
	if r.ContentLength >= 0 {
		setLength(w.Header(), uint64(r.ContentLength))
	}
	s.Copy(w, r.Body)
}

// Copy copies until the end. Returns whether it reached the end.
func (s *Site) Copy(w io.Writer, r io.Reader) bool {
	buffer := s.buffers.Get().(*[64 * 1024]byte)
	defer s.buffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buffer[:])
	return err == nil
}

// Wait waits until so many microseconds after an arrival.
func (s *Site) Wait(arrival clock.Moment, delay uint64) {
	timer := s.timers.Get().(*clock.Timer)
	timer.Until(arrival.Add(time.Duration(delay) * time.Microsecond))
	s.timers.Put(timer)
}

func serveNumber(w http.ResponseWriter, text string, most uint64, serve func(uint64)) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number > most {
		status(w, http.StatusBadRequest)
		return
	}
	serve(number)
}

func status(w http.ResponseWriter, code int) {
	setLength(w.Header(), 0)
	w.WriteHeader(code)
}

func setLength(header http.Header, size uint64) {
	header["Content-Length"] = []string{strconv.FormatUint(size, 10)}
}
