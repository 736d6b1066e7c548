package pattern

import "encoding/binary"

// HeaderSize of a raw request.
const HeaderSize = 24

// Header comes before the body of a raw request.
type Header struct {
	// Wanted bytes of response, and bytes of this request's body.
	Wanted, Body uint64
	// Delay of the answer in microseconds.
	Delay uint64
}

// Encode is the header on the wire.
func (h Header) Encode() [HeaderSize]byte {
	var b [HeaderSize]byte
	binary.BigEndian.PutUint64(b[:], h.Wanted)
	binary.BigEndian.PutUint64(b[8:], h.Body)
	binary.BigEndian.PutUint64(b[16:], h.Delay)
	return b
}

// Decode reads a header.
func Decode(b [HeaderSize]byte) Header {
	return Header{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
}
