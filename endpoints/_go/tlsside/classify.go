package tlsside

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"wirelab/endpoint/contract"
)

// Alerts of certificates (RFC 8446, section 6): bad_certificate to certificate_unknown, and unknown_ca.
const (
	badCertificate, certificateUnknown = 42, 46
	unknownCA                          = 48
	noApplicationProtocol              = 120
)

// KindOfAlert is the class of a TLS alert, which QUIC carries by number.
func KindOfAlert(alert uint8) contract.Kind {
	switch {
	case alert >= badCertificate && alert <= certificateUnknown, alert == unknownCA:
		return contract.Certificate
	case alert == noApplicationProtocol:
		return contract.Protocol
	}
	return contract.TLS
}

// Classify is the class of an error of TLS, or none.
func Classify(err error) contract.Kind {
	if IsOfCertificate(err) {
		return contract.Certificate
	}
	if alert, is := errors.AsType[tls.AlertError](err); is {
		return KindOfAlert(uint8(alert))
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return contract.TLS
	}
	// Over TCP the library reports alerts only as text.
	switch text := err.Error(); {
	case strings.Contains(text, "tls: no application protocol"), strings.Contains(text, "unadvertised ALPN protocol"):
		return contract.Protocol
	case strings.Contains(text, "tls: bad certificate"), strings.Contains(text, "tls: unknown certificate authority"),
		strings.Contains(text, "tls: expired certificate"):
		return contract.Certificate
	case strings.Contains(text, "tls: "):
		return contract.TLS
	}
	return contract.None
}

// IsOfCertificate says whether the server's certificate was not accepted.
func IsOfCertificate(err error) bool {
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return true
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return true
	}
	if _, is := errors.AsType[x509.HostnameError](err); is {
		return true
	}
	_, is := errors.AsType[x509.CertificateInvalidError](err)
	return is
}
