package main

import (
	"errors"
	"strings"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/fault"
	"wirelab/endpoint/tlsside"
)

// failed is an error of quic-go as a failure.
func failed(attempt string, err error) *contract.Failure {
	kind := kindOf(err)
	if kind == contract.None {
		return fault.Of(attempt, err)
	}
	return contract.Failed(kind, "%s: %v", attempt, err)
}

func kindOf(err error) contract.Kind {
	if tlsside.IsOfCertificate(err) {
		return contract.Certificate
	}
	if transport, is := errors.AsType[*quic.TransportError](err); is {
		return kindOfCode(transport.ErrorCode)
	}
	if h3, is := errors.AsType[*http3.Error](err); is && !h3.Remote {
		return contract.Protocol
	}
	if is[*quic.StreamError](err) || is[*quic.ApplicationError](err) || is[*quic.StatelessResetError](err) {
		return contract.Reset
	}
	if is[*quic.IdleTimeoutError](err) || is[*quic.HandshakeTimeoutError](err) {
		return contract.Timeout
	}
	if is[*quic.VersionNegotiationError](err) {
		return contract.Protocol
	}
	if strings.Contains(err.Error(), "http3: ") && fault.Kind(err) == contract.Other {
		return contract.Protocol
	}
	return contract.None
}

func is[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// kindOfCode is the class of an error code of QUIC (RFC 9000, section 20.1); from 0x100 on it carries a TLS alert.
func kindOfCode(code quic.TransportErrorCode) contract.Kind {
	switch {
	case code == quic.ConnectionRefused:
		return contract.Refused
	case code.IsCryptoError():
		return tlsside.KindOfAlert(uint8(code))
	}
	return contract.Protocol
}

// isOfConnection says whether an error is that of a whole connection, which is lost then.
func isOfConnection(err error) bool {
	return is[*quic.TransportError](err) || is[*quic.ApplicationError](err) || is[*quic.StatelessResetError](err) ||
		is[*quic.IdleTimeoutError](err) || is[*quic.HandshakeTimeoutError](err) || is[*quic.VersionNegotiationError](err) ||
		errors.Is(err, quic.ErrTransportClosed)
}
