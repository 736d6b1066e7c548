package site

import (
	"io"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/pattern"
)

// ServeRaw answers one request of a raw transport: it reads the body and writes the wanted bytes. It returns whether
// all went well.
func (s *Site) ServeRaw(stream io.ReadWriter) bool {
	arrival := clock.Now()
	var encoded [pattern.HeaderSize]byte
	if _, err := io.ReadFull(stream, encoded[:]); err != nil {
		return false
	}
	header := pattern.Decode(encoded)
	if header.Wanted > largestBody || header.Delay > longestDelay || header.Delay > 0 && !s.delay {
		return false
	}
	buffer := s.buffers.Get().(*[64 * 1024]byte)
	n, err := io.CopyBuffer(discard{}, struct{ io.Reader }{io.LimitReader(stream, int64(min(header.Body, largestBody)))}, buffer[:])
	s.buffers.Put(buffer)
	if err != nil || uint64(n) < header.Body {
		return false
	}
	if header.Delay > 0 {
		s.Wait(arrival, header.Delay)
	}
	s.answered.Add(1)
	return pattern.Write(stream, header.Wanted) == nil
}

// discard is io.Discard without its own buffers.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
