package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/quic-go/quic-go"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/pattern"
)

// rawConnection carries raw requests, each on a stream of its own.
type rawConnection struct{ *link }

// rawRequest is the request, made once: the opening is its header and the beginning of its body.
type rawRequest struct {
	header  pattern.Header
	opening []byte
}

const openingBody = 64 * 1024

func newRawRequest(header pattern.Header) *rawRequest {
	encoded := header.Encode()
	return &rawRequest{header, append(encoded[:], pattern.Piece(0, min(header.Body, openingBody))...)}
}

// delayOf is what a path asks for, in microseconds.
func delayOf(path string) uint64 {
	if text, is := strings.CutPrefix(path, "/delay/"); is {
		if delay, err := strconv.ParseUint(text, 10, 64); err == nil {
			return delay
		}
	}
	return 0
}

func (c *rawConnection) Exchange(scratch *load.Scratch, by clock.Moment, look func([]byte)) (load.Answer, *contract.Failure) {
	undecided := c.isUndecided()
	if undecided {
		c.early.Store(true)
	}
	answer, err := c.exchange(scratch, by, look)
	if undecided && errors.Is(err, quic.Err0RTTRejected) {
		if err = c.afterRejection(by, func(*quic.Conn) {}); err == nil {
			answer, err = c.exchange(scratch, by, look)
		}
	}
	if err != nil {
		return answer, c.fail(err)
	}
	return answer, c.negotiated()
}

func (c *rawConnection) exchange(scratch *load.Scratch, by clock.Moment, look func([]byte)) (load.Answer, error) {
	stream, err := c.stream(by)
	if err != nil {
		return load.Answer{}, err
	}
	_ = stream.SetDeadline(by.Time())
	if err := c.send(stream); err != nil {
		stream.CancelRead(0)
		stream.CancelWrite(0)
		return load.Answer{}, err
	}
	answer, err := receive(stream, scratch.Buffer, c.driver.raw.header.Wanted, look)
	if err != nil {
		// Tells the server that the rest is not wanted, so that it does not go on sending beside the next request.
		stream.CancelRead(0)
	}
	return answer, err
}

// stream opens a stream; it waits only where the server allows no further one.
func (c *rawConnection) stream(by clock.Moment) (*quic.Stream, error) {
	stream, err := c.quic.OpenStream()
	if !errors.Is(err, &quic.StreamLimitReachedError{}) {
		return stream, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), by.Time())
	defer cancel()
	return c.quic.OpenStreamSync(ctx)
}

func (c *rawConnection) send(stream *quic.Stream) error {
	request := c.driver.raw
	if len(request.opening) > leastPayload/2 {
		// quic-go keeps as much as fits a packet, and returns; with more it waits until it is sent.
		c.udp.Release()
	}
	_, err := stream.Write(request.opening)
	c.udp.Release()
	if err != nil {
		return err
	}
	for sent := uint64(openingBody); sent < request.header.Body; {
		n, err := stream.Write(pattern.Piece(sent, request.header.Body-sent))
		if err != nil {
			return err
		}
		sent += uint64(n)
	}
	return stream.Close()
}

func receive(stream *quic.Stream, buffer []byte, wanted uint64, look func([]byte)) (answer load.Answer, err error) {
	for err == nil {
		var n int
		n, err = stream.Read(buffer)
		answer.LastByte = clock.Now()
		if answer.FirstByte == 0 && (n > 0 || err == io.EOF) {
			answer.FirstByte = answer.LastByte
		}
		answer.BytesIn += uint64(n)
		if look != nil {
			look(buffer[:n])
		}
		if answer.BytesIn > wanted {
			return answer, contract.Failed(contract.Digest, "the response is longer than the %d bytes that were asked for", wanted)
		}
	}
	if err == io.EOF {
		err = nil
		if answer.BytesIn < wanted {
			err = contract.Failed(contract.Truncated, "the response ended after %d of %d bytes", answer.BytesIn, wanted)
		}
	}
	return answer, err
}

// Close ends the connection with the code 0.
func (c *rawConnection) Close() { c.close(0) }
