package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

// http3Connection is a connection of HTTP/3.
type http3Connection struct {
	*link
	client atomic.Pointer[http3.ClientConn]
}

func (c *http3Connection) Exchange(scratch *load.Scratch, by clock.Moment, look func([]byte)) (load.Answer, *contract.Failure) {
	template, undecided := c.driver.template, c.isUndecided()
	var over http.RoundTripper = c.client.Load()
	if undecided {
		c.early.Store(true)
		over = earlyRequest{c}
	}
	answer, err := template.Exchange(over, scratch, by, look)
	if undecided && errors.Is(err, quic.Err0RTTRejected) {
		if err = c.afterRejection(by, func(next *quic.Conn) { c.client.Store(c.driver.http3.NewClientConn(next)) }); err == nil {
			answer, err = template.Exchange(c.client.Load(), scratch, by, look)
		}
	}
	if err != nil {
		return answer, c.fail(err)
	}
	return answer, c.negotiated()
}

// earlyRequest sends a request without a body as early data, and waits for the server's decision before it looks for a
// response, which cannot come earlier. http3's own way would not do: it gives up the stream of a request that was
// rejected by resetting it, and the reset would hit the next stream with its number (quic-go 0.65).
type earlyRequest struct{ *http3Connection }

func (c earlyRequest) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	stream, err := c.client.Load().OpenRequestStream(ctx)
	if err != nil {
		return nil, err
	}
	if deadline, has := ctx.Deadline(); has {
		_ = stream.SetDeadline(deadline)
	}
	if err := stream.SendRequestHeader(request); err != nil {
		return nil, err
	}
	_ = stream.Close()
	c.udp.Release()
	select {
	case <-c.quic.HandshakeComplete():
	case <-c.quic.Context().Done():
		return nil, context.Cause(c.quic.Context())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !c.quic.ConnectionState().Used0RTT {
		return nil, quic.Err0RTTRejected
	}
	response, err := stream.ReadResponse()
	if err != nil {
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}
	return response, err
}

// Close ends the connection with H3_NO_ERROR.
func (c *http3Connection) Close() { c.close(quic.ApplicationErrorCode(http3.ErrCodeNoError)) }
