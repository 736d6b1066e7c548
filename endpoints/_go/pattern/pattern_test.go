package pattern

import (
	"bytes"
	"io"
	"testing"
)

func whole(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func TestPiecesJoinToThePatternAtAnyOffset(t *testing.T) {
	want := whole(3 * Longest)
	var joined []byte
	for len(joined) < len(want) {
		wanted := min(len(want)-len(joined), Longest-7)
		joined = append(joined, Piece(uint64(len(joined)), uint64(wanted))...)
	}
	if !bytes.Equal(joined, want) {
		t.Error("the pieces do not join to the pattern")
	}
}

func TestWriterAndReaderGiveTheWholeBody(t *testing.T) {
	for _, size := range []int{0, 1, 251, 1000, Longest + 1, 2*Longest + 17} {
		var written bytes.Buffer
		if err := Write(&written, uint64(size)); err != nil || !bytes.Equal(written.Bytes(), whole(size)) {
			t.Errorf("%d bytes: written wrong, %v", size, err)
		}
		read, err := io.ReadAll(NewReader(uint64(size)))
		if err != nil || !bytes.Equal(read, whole(size)) {
			t.Errorf("%d bytes: read wrong, %v", size, err)
		}
	}
}

func TestAHeaderIsThreeBigEndianNumbers(t *testing.T) {
	header := Header{Wanted: 0x0102030405060708, Body: 3, Delay: 1 << 40}
	encoded := header.Encode()
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 1, 0, 0, 0, 0, 0}
	if !bytes.Equal(encoded[:], want) {
		t.Errorf("encoded as %v", encoded)
	}
	if Decode(encoded) != header {
		t.Errorf("read back as %v", Decode(encoded))
	}
}
