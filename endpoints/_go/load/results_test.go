package load

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"wirelab/endpoint/contract"
)

func TestSamplesAreWrittenInTheOrderOfTheirIntendedStarts(t *testing.T) {
	s, err := newSamples(1)
	if err != nil {
		t.Fatal(err)
	}
	s.keep(0, &record{intended: 130, start: 131, end: 140, failure: contract.Reset, connection: 1})
	s.keep(1, &record{
		intended: 110, start: 111, connected: 112, ready: 113, firstByte: 114, end: 150, bytesIn: 5, bytesOut: 6, status: 200,
		opened: true, handshake: contract.Resumed,
	})
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	if err := s.write(path, 100); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	want := `{"intended_ns":10,"start_ns":11,"connected_ns":12,"handshake_ns":13,"first_byte_ns":14,"last_byte_ns":50,"bytes_out":6,"bytes_in":5,"status":200,"connection":0,"handshake":"resumed"}
{"intended_ns":30,"start_ns":31,"last_byte_ns":40,"bytes_out":0,"bytes_in":0,"connection":1,"error":"reset"}
`
	if string(text) != want {
		t.Errorf("written is\n%s", text)
	}
	succeeded, failed := s.counts()
	if succeeded != 1 || len(failed) != 1 || failed["reset"] != 1 {
		t.Errorf("the counts are %d and %v", succeeded, failed)
	}
}

func TestMoreSamplesThanExpectedAreKept(t *testing.T) {
	s, err := newSamples(10)
	if err != nil {
		t.Fatal(err)
	}
	const count = chunkRecords + 100
	for i := range uint64(count) {
		s.keep(0, &record{bytesIn: i, end: 1})
	}
	for i := range uint64(count) {
		if s.at(i).bytesIn != i {
			t.Fatalf("record %d is %+v", i, s.at(i))
		}
	}
}

func TestMergedHistogramsKeepExactExtremesAndSums(t *testing.T) {
	h := &histograms{make([]part, 2)}
	for i := range h.parts {
		h.parts[i].counters = newCounters()
	}
	for i := range 1000 {
		h.keep(i, &record{intended: 1000, start: 1010, firstByte: 1050, end: 101_000, bytesIn: 10})
		h.keep(i+1, &record{intended: 1000, start: 1010, ready: 1040, firstByte: 1050, end: 301_000, bytesIn: 10, opened: true, handshake: contract.Full})
	}
	h.keep(0, &record{intended: 1, start: 1, end: 1 + 2*1<<47, failure: contract.Timeout})
	path := filepath.Join(t.TempDir(), "histograms.json")
	if err := h.write(path, 0); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	var results struct {
		Response, Handshake, Lag, Failure encoded
		Requests, Connections             uint64
		BytesIn                           uint64 `json:"bytes_in"`
		Errors, Handshakes                map[string]uint64
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	r := results.Response
	if r.Count != 2000 || r.MinNs != 100_000 || r.MaxNs != 300_000 || r.SumNs != 400_000_000 {
		t.Errorf("`response` is %+v", r)
	}
	if results.Requests != 2000 || results.BytesIn != 20_000 || results.Connections != 1000 || results.Errors["timeout"] != 1 ||
		results.Handshakes["full"] != 1000 || results.Lag.Count != 2001 || results.Failure.MaxNs != 2*1<<47 {
		t.Errorf("the results are %s", text)
	}
	if h := results.Handshake; h.Count != 1000 || h.MinNs != 30 {
		t.Errorf("`handshake` is %+v", h)
	}
	v2, err := base64.StdEncoding.DecodeString(r.V2)
	if err != nil || len(v2) < 40 {
		t.Fatalf("`response.v2` has %d bytes, %v", len(v2), err)
	}
	// Cookie, length of the counts, and three significant digits: the uncompressed V2 encoding.
	if !bytes.Equal(v2[:4], []byte{0x1c, 0x84, 0x93, 0x13}) || int(binary.BigEndian.Uint32(v2[4:])) != len(v2)-40 || v2[15] != 3 {
		t.Errorf("`response.v2` begins with % x", v2[:40])
	}
}

func TestAnEmptyHistogramIsEmpty(t *testing.T) {
	c := newCounters()
	if e, err := c.distributions[response].encode(); err != nil || e != (encoded{}) {
		t.Errorf("it is %+v, %v", e, err)
	}
}
