// Package pattern makes the bodies of the contract: the byte at offset i is i mod 251. A body is made of slices of one
// buffer, so that sending it copies and allocates nothing.
package pattern

import "io"

const (
	period = 251
	// Longest is the longest piece.
	Longest = 256 * 1024
)

// One period longer than the longest piece, so that a piece can begin at any point of the period.
var buffer = func() []byte {
	b := make([]byte, Longest+period)
	for i := range b {
		b[i] = byte(i % period)
	}
	return b
}()

// Piece is the pattern from an offset on: the wanted bytes, or the longest piece if that is less.
func Piece(offset, wanted uint64) []byte {
	start := offset % period
	return buffer[start : start+min(wanted, Longest)]
}

// Write writes a body of a size.
func Write(w io.Writer, size uint64) error {
	for offset := uint64(0); offset < size; {
		n, err := w.Write(Piece(offset, size-offset))
		offset += uint64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// Reader reads a body.
type Reader struct{ offset, left uint64 }

// NewReader reads a body of a size.
func NewReader(size uint64) *Reader { return &Reader{0, size} }

func (r *Reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, Piece(r.offset, r.left))
	r.offset += uint64(n)
	r.left -= uint64(n)
	return n, nil
}

// Close does nothing: it makes a reader the body of a request.
func (r *Reader) Close() error { return nil }
