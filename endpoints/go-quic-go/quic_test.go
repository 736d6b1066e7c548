package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

const name = "server.wirelab.test"

// certificate makes a certificate that is its own authority, and its key.
func certificate(t *testing.T) (string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("leaf.pem", "CERTIFICATE", der), write("leaf.key", "PRIVATE KEY", encoded)
}

func serve(t *testing.T, protocol string, port int, certificate, key string) *server {
	t.Helper()
	s, err := newServer(&contract.ServerSpec{
		Common:   contract.Common{Protocol: protocol, Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))},
		TLS:      &contract.ServerTLS{Certificate: certificate, Key: key, Resumption: true, EarlyData: true},
		Features: []string{"bytes", "echo"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drive(t *testing.T, protocol, anchor string, s *server, body uint64) *driver {
	t.Helper()
	d, err := newDriver(&contract.ClientSpec{
		Common: contract.Common{
			Protocol: protocol, ServerName: name,
			Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(s.Port())),
		},
		TLS: &contract.ClientTLS{TrustAnchor: anchor, Verify: true},
		Request: contract.Request{
			Method: "GET", Path: "/bytes/2000", BodySize: body, Expect: &contract.Expect{Status: 200, BodySize: 2000},
		},
		PerRequest: true, Resumption: "zero_rtt", ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// once opens a connection, sends the request, closes the connection, and says how it began.
func once(t *testing.T, d *driver) contract.Handshake {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	opened, failure := d.Dial(ctx)
	if failure != nil {
		t.Fatal(failure)
	}
	answer, failure := opened.Connection.Exchange(&load.Scratch{Buffer: make([]byte, 512)}, clock.Now().Add(time.Minute), nil)
	if failure != nil || answer.BytesIn != 2000 {
		t.Fatalf("answered %+v, %v", answer, failure)
	}
	began := opened.Connection.Handshake()
	opened.Connection.Close()
	return began
}

func TestEarlyDataIsAcceptedByTheServerThatGaveTheTicketAndSentAgainToAnotherOne(t *testing.T) {
	certificate, key := certificate(t)
	for _, c := range []struct {
		protocol string
		body     uint64
	}{{"h3", 0}, {"quic", 0}, {"quic", 100_000}} {
		s := serve(t, c.protocol, 0, certificate, key)
		d := drive(t, c.protocol, certificate, s, c.body)
		if began := once(t, d); began != contract.Full {
			t.Errorf("%+v: the first connection is %v", c, began)
		}
		for range 5 {
			// A body beyond the first packets may be early data or not: that is a matter of time.
			if began := once(t, d); began != contract.EarlyAccepted && c.body == 0 {
				t.Errorf("%+v: a later connection is %v", c, began)
			}
		}
		s.Stop()
		_ = s.udp.Close()
		// It has other ticket keys.
		s = serve(t, c.protocol, s.Port(), certificate, key)
		if began := once(t, d); began != contract.EarlyRejected && c.body == 0 {
			t.Errorf("%+v: to another server the connection is %v", c, began)
		}
		if report := d.Accounts().Report(); report.Connections != 7 {
			t.Errorf("%+v: the accounts are of %d connections", c, report.Connections)
		}
		s.Stop()
		_ = s.udp.Close()
	}
}

func TestAPortWhereNobodyListensIsRefused(t *testing.T) {
	certificate, key := certificate(t)
	s := serve(t, "quic", 0, certificate, key)
	d := drive(t, "quic", certificate, s, 0)
	s.Stop()
	_ = s.udp.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, failure := d.Dial(ctx); failure == nil || failure.Kind != contract.Refused {
		t.Errorf("the failure is %v", failure)
	}
}
