package load

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"wirelab/endpoint/clock"
)

// longest time that a histogram tells from longer ones.
const longest = 24 * time.Hour

// distribution is an HDR histogram with exact extremes and sum.
type distribution struct {
	hdr           *hdrhistogram.Histogram
	min, max, sum uint64
}

func newDistribution() distribution {
	return distribution{hdr: hdrhistogram.New(1, int64(longest), 3), min: math.MaxUint64}
}

func (d *distribution) add(from, to clock.Moment) {
	ns := max(to-from, 0)
	// It cannot fail within the bounds.
	_ = d.hdr.RecordValue(min(int64(ns), int64(longest)))
	d.min, d.max = min(d.min, uint64(ns)), max(d.max, uint64(ns))
	d.sum += uint64(ns)
}

func (d *distribution) merge(other *distribution) {
	d.hdr.Merge(other.hdr)
	d.min, d.max = min(d.min, other.min), max(d.max, other.max)
	d.sum += other.sum
}

// encoded is a histogram in the contract's form.
type encoded struct {
	V2    string `json:"v2"`
	Count uint64 `json:"count"`
	MinNs uint64 `json:"min_ns"`
	MaxNs uint64 `json:"max_ns"`
	SumNs uint64 `json:"sum_ns"`
}

func (d *distribution) encode() (encoded, error) {
	count := uint64(d.hdr.TotalCount())
	if count == 0 {
		return encoded{}, nil
	}
	v2, err := inflated(d.hdr)
	return encoded{base64.StdEncoding.EncodeToString(v2), count, d.min, d.max, d.sum}, err
}

// inflated is the V2 encoding. The library offers only the compressed one: base64 of a cookie, a length, and the
// deflated encoding.
func inflated(hdr *hdrhistogram.Histogram) ([]byte, error) {
	const header = 8
	text, err := hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, err
	}
	compressed, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(compressed) < header {
		return nil, fmt.Errorf("the library's encoding has %d bytes: %w", len(compressed), err)
	}
	reader, err := zlib.NewReader(bytes.NewReader(compressed[header:]))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
