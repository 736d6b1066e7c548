package load

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
)

const (
	chunkRecords = 1 << 16
	mostChunks   = 1 << 12
)

type chunk [chunkRecords]record

// samples keeps every record, outside the collected heap. Otherwise the frequency of garbage collections would
// depend on the room for records. The memory is allocated and touched before the window.
type samples struct {
	count  atomic.Uint64
	chunks [mostChunks]atomic.Pointer[chunk]
	grow   sync.Mutex
}

func newSamples(expected uint64) (*samples, error) {
	s := new(samples)
	for i := uint64(0); i < expected; i += chunkRecords {
		c, err := newChunk()
		if err != nil {
			return nil, err
		}
		s.chunks[i/chunkRecords].Store(c)
		for j := range min(expected-i, chunkRecords) {
			c[j].end = 1
		}
	}
	return s, nil
}

func newChunk() (*chunk, error) {
	memory, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(chunk{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, contract.Failed(contract.Other, "memory for records: %v", err)
	}
	return (*chunk)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

func (s *samples) keep(_ int, r *record) {
	number := s.count.Add(1) - 1
	c := s.chunks[number/chunkRecords].Load()
	if c == nil {
		c = s.chunk(number / chunkRecords)
	}
	c[number%chunkRecords] = *r
}

// chunk makes a chunk beyond the expected ones.
func (s *samples) chunk(number uint64) *chunk {
	s.grow.Lock()
	defer s.grow.Unlock()
	c := s.chunks[number].Load()
	if c == nil {
		var err error
		if c, err = newChunk(); err != nil {
			contract.Finish(err)
		}
		s.chunks[number].Store(c)
	}
	return c
}

func (s *samples) at(number uint64) *record {
	return &s.chunks[number/chunkRecords].Load()[number%chunkRecords]
}

func (s *samples) counts() (succeeded uint64, failed map[string]uint64) {
	failed = map[string]uint64{}
	for i := range s.count.Load() {
		if kind := s.at(i).failure; kind != contract.None {
			failed[kind.String()]++
		} else {
			succeeded++
		}
	}
	return succeeded, failed
}

// write writes the records as JSON lines, in the order of their intended starts.
func (s *samples) write(path string, zero clock.Moment) error {
	order := make([]*record, s.count.Load())
	for i := range order {
		order[i] = s.at(uint64(i))
	}
	slices.SortStableFunc(order, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.intended, b.intended), cmp.Compare(a.start, b.start))
	})
	return writeFile(path, func(w *bufio.Writer) {
		var line []byte
		for _, r := range order {
			line = r.appendJSON(line[:0], zero)
			_, _ = w.Write(line) // an error stays with the writer, and comes back when it is flushed
		}
	})
}

func writeFile(path string, fill func(*bufio.Writer)) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	fill(w)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return file.Sync()
}

func (r *record) appendJSON(b []byte, zero clock.Moment) []byte {
	number := func(name string, value int64) {
		b = append(b, ",\""...)
		b = append(b, name...)
		b = append(b, "\":"...)
		b = strconv.AppendInt(b, value, 10)
	}
	moment := func(name string, at clock.Moment) {
		if at != 0 {
			number(name, int64(at-zero))
		}
	}
	word := func(name, value string) {
		if value != "" {
			b = append(b, ",\""+name+"\":\""+value+"\""...)
		}
	}
	moment("intended_ns", r.intended)
	b[0] = '{'
	moment("start_ns", r.start)
	moment("connected_ns", r.connected)
	moment("handshake_ns", r.ready)
	moment("first_byte_ns", r.firstByte)
	moment("last_byte_ns", r.end)
	number("bytes_out", int64(r.bytesOut))
	number("bytes_in", int64(r.bytesIn))
	if r.status != 0 {
		number("status", int64(r.status))
	}
	number("connection", int64(r.connection))
	word("handshake", r.handshake.String())
	word("error", r.failure.String())
	return append(b, '}', '\n')
}
