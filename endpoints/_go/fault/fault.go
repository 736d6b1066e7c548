// Package fault puts errors of the operating system, of TLS and of HTTP into the classes of the contract.
package fault

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/tlsside"
)

// Of converts an error to a failure; attempt names the action that failed.
func Of(attempt string, err error) *contract.Failure {
	return contract.Failed(Kind(err), "%s: %v", attempt, err)
}

// Kind is the class of an error.
func Kind(err error) contract.Kind {
	if failure, is := errors.AsType[*contract.Failure](err); is {
		return failure.Kind
	}
	if isTimeout(err) {
		return contract.Timeout
	}
	if kind := ofSystem(err); kind != contract.None {
		return kind
	}
	if kind := tlsside.Classify(err); kind != contract.None {
		return kind
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return contract.Truncated
	}
	return ofHTTP(err)
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func ofSystem(err error) contract.Kind {
	number, is := errors.AsType[syscall.Errno](err)
	if !is {
		return contract.None
	}
	switch number {
	case syscall.ECONNREFUSED:
		return contract.Refused
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ETIMEDOUT:
		return contract.Unreachable
	// EPIPE: the peer has reset the connection before.
	case syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE:
		return contract.Reset
	}
	return contract.None
}

// streamError has the fields of the error of a stream of HTTP/2, which net/http converts to it.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "an HTTP/2 stream" }

// ofHTTP classifies the errors of net/http, most of them by their text, because net/http offers nothing else.
func ofHTTP(err error) contract.Kind {
	if stream, is := errors.AsType[streamError](err); is {
		// Without a cause on this side, the peer has sent RST_STREAM.
		if stream.Cause == nil || strings.Contains(stream.Cause.Error(), "received from peer") {
			return contract.Reset
		}
		return contract.Protocol
	}
	text := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("GOAWAY", "client connection lost"):
		return contract.Reset
	case has("server closed idle connection", "unexpected EOF", "client conn is closed", "client conn not usable"):
		return contract.Truncated
	case has("malformed", "connection error:", "http2: frame too large", "invalid header", "unsolicited response",
		"bad Content-Length", "invalid Transfer-Encoding", "frame header looked like", "header list too large",
		// The connection ended before SETTINGS, with which a server begins.
		"client conn could not be established",
		"server replied with more than declared Content-Length"):
		return contract.Protocol
	case errors.Is(err, net.ErrClosed):
		return contract.Reset
	}
	return contract.Other
}
