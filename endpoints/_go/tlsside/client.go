package tlsside

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"wirelab/endpoint/contract"
)

// Client is a client's side of TLS.
type Client struct {
	config  *tls.Config
	tickets *Tickets
	alpn    string
}

// NewClient takes a spec's trust and resumption.
func NewClient(spec *contract.ClientSpec) (*Client, error) {
	alpn := contract.ALPN[spec.Protocol]
	config, err := common(alpn, spec.TLS.KeyLog)
	if err != nil {
		return nil, err
	}
	config.ServerName = spec.ServerName
	config.InsecureSkipVerify = !spec.TLS.Verify
	if spec.TLS.TrustAnchor != "" {
		anchor, err := os.ReadFile(spec.TLS.TrustAnchor)
		if err != nil {
			return nil, contract.Failed(contract.Other, "reading the trust anchor: %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(anchor) {
			return nil, contract.Failed(contract.Other, "the trust anchor %s has no certificate", spec.TLS.TrustAnchor)
		}
	}
	c := &Client{config: config, alpn: alpn}
	if spec.Resumption != "none" {
		c.tickets = new(Tickets)
	}
	return c, nil
}

// Stored is the number of tickets.
func (c *Client) Stored() int {
	if c.tickets == nil {
		return 0
	}
	return c.tickets.Len()
}

// Connection is the configuration of one connection, and the store that notes its ticket; nil if none is wanted.
// It reports to resumes, unless that is nil, whether the connection resumes a session that allows early data.
func (c *Client) Connection(resumes func(early bool)) (*tls.Config, *Arrival) {
	if c.tickets == nil {
		return c.config, nil
	}
	arrival := &Arrival{tickets: c.tickets, came: make(chan struct{}), resumes: resumes}
	config := c.config.Clone()
	config.ClientSessionCache = arrival
	return config, arrival
}

// Check verifies the negotiated protocol: another one is a failure.
func (c *Client) Check(state *tls.ConnectionState) *contract.Failure {
	if state.NegotiatedProtocol != c.alpn {
		got := state.NegotiatedProtocol
		if got == "" {
			got = "nothing"
		}
		return contract.Failed(contract.Protocol, "%s was negotiated (ALPN) instead of %s", got, c.alpn)
	}
	return nil
}

// Handshake is the kind of a connection's handshake, as the library proves it.
func Handshake(state *tls.ConnectionState) contract.Handshake {
	if state.DidResume {
		return contract.Resumed
	}
	return contract.Full
}

// Facts are the negotiated values.
func Facts(state *tls.ConnectionState) contract.Configured {
	chain := 0
	for _, certificate := range state.PeerCertificates {
		chain += len(certificate.Raw)
	}
	return contract.Configured{
		"alpn":                    state.NegotiatedProtocol,
		"cipher":                  tls.CipherSuiteName(state.CipherSuite),
		"group":                   state.CurveID.String(),
		"certificate_chain_bytes": chain,
	}
}
