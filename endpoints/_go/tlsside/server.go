// Package tlsside is TLS 1.3 for both roles, from the spec; the same for TLS over TCP and inside QUIC.
//
// One key exchange group, X25519, as wirelab's own endpoints have: Go would prefer a hybrid one with ML-KEM, whose key
// shares of more than a kilobyte need a second packet. Go does not let the cipher suites of TLS 1.3 be chosen.
package tlsside

import (
	"crypto/rand"
	"crypto/tls"
	"io"
	"os"

	"wirelab/endpoint/contract"
)

func common(alpn, keyLog string) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:       tls.VersionTLS13,
		NextProtos:       []string{alpn},
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
	if keyLog != "" {
		log, err := openKeyLog(keyLog)
		if err != nil {
			return nil, contract.Failed(contract.Other, "opening the key log: %v", err)
		}
		config.KeyLogWriter = log
	}
	return config, nil
}

func openKeyLog(path string) (io.Writer, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// Server is a server's side of TLS.
func Server(spec *contract.ServerSpec) (*tls.Config, error) {
	config, err := common(contract.ALPN[spec.Protocol], spec.TLS.KeyLog)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(spec.TLS.Certificate, spec.TLS.Key)
	if err != nil {
		return nil, contract.Failed(contract.Other, "loading the certificate %s and its key: %v", spec.TLS.Certificate, err)
	}
	config.Certificates = []tls.Certificate{certificate}
	config.SessionTicketsDisabled = !spec.TLS.Resumption
	// Explicit keys, because each clone of a configuration would make its own, and QUIC libraries clone.
	var key [32]byte
	_, _ = rand.Read(key[:]) // it cannot fail
	config.SetSessionTicketKeys([][32]byte{key})
	return config, nil
}
