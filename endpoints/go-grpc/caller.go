package main

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

// caller makes the call of the spec over a channel of grpc-go.
type caller struct {
	call    *call
	channel *grpc.ClientConn
	// wasReset says whether the peer has reset the channel's connection; nil if it has several.
	wasReset func() bool
}

func (c *caller) Exchange(scratch *load.Scratch, by clock.Moment, look func([]byte)) (load.Answer, *contract.Failure) {
	ctx, cancel := context.WithCancelCause(c.call.context)
	defer cancel(nil)
	// Not a deadline of the context: grpc-go would send it to the server in a header field, which other clients do not.
	timer := time.AfterFunc(time.Until(by.Time()), func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	answer, failure := c.call.make(ctx, c, scratch, look)
	if failure != nil && context.Cause(ctx) == context.DeadlineExceeded {
		failure = contract.Failed(contract.Timeout, "the answer was not complete in time")
	}
	return answer, failure
}

// wait connects the channel, and waits until it can carry calls; broken has the reason if it never can.
func (c *caller) wait(ctx context.Context, to string, broken func() *contract.Failure) *contract.Failure {
	c.channel.Connect()
	for state := c.channel.GetState(); state != connectivity.Ready; state = c.channel.GetState() {
		if state == connectivity.TransientFailure {
			c.Abandon()
			return broken()
		}
		if !c.channel.WaitForStateChange(ctx, state) {
			c.Abandon()
			return contract.Failed(contract.Timeout, "connecting to %s: %v", to, ctx.Err())
		}
	}
	return nil
}

func (c *caller) Abandon() { _ = c.channel.Close() }

// failure is the failure of a call. grpc-go has one error for the server's answer and for what the connection
// does; only the text distinguishes them.
func (c *caller) failure(err error) *contract.Failure {
	told := status.Convert(err)
	return contract.Failed(c.kind(told), "calling by gRPC: `grpc-status` %d (%s): %s", told.Code(), told.Code(), told.Message())
}

func (c *caller) kind(told *status.Status) contract.Kind {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(told.Message(), part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("unexpected HTTP status code"):
		return contract.Status
	case c.wasReset != nil && c.wasReset(), has("RST_STREAM", "connection reset", "GOAWAY", "connection is draining"):
		return contract.Reset
	// A channel that opens its connections itself has no other sign.
	case has("connection refused"):
		return contract.Refused
	case has("EOF", "error reading from server", "transport is closing", errBroken.Error()):
		return contract.Truncated
	case told.Code() == codes.Internal, told.Code() == codes.Unknown, has("malformed", "protocol error"):
		return contract.Protocol
	}
	return contract.Status
}
