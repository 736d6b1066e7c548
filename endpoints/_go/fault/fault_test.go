package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"

	"wirelab/endpoint/contract"
)

func TestErrorsAreClassified(t *testing.T) {
	of := func(number syscall.Errno) error {
		return &net.OpError{Op: "read", Err: os.NewSyscallError("read", number)}
	}
	for _, c := range []struct {
		err  error
		want contract.Kind
	}{
		{of(syscall.ECONNREFUSED), contract.Refused},
		{of(syscall.EHOSTUNREACH), contract.Unreachable},
		{of(syscall.ECONNRESET), contract.Reset},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", of(syscall.EPIPE)), contract.Reset},
		{context.DeadlineExceeded, contract.Timeout},
		{os.ErrDeadlineExceeded, contract.Timeout},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, contract.Certificate},
		{x509.HostnameError{Certificate: new(x509.Certificate)}, contract.Certificate},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, contract.TLS},
		{errors.New("remote error: tls: no application protocol"), contract.Protocol},
		{errors.New("remote error: tls: handshake failure"), contract.TLS},
		{io.ErrUnexpectedEOF, contract.Truncated},
		{errors.New("net/http: HTTP/1.x transport connection broken: malformed HTTP response \"x\""), contract.Protocol},
		{errors.New("http2: server sent GOAWAY and closed the connection"), contract.Reset},
		{errors.New("http2: client conn could not be established"), contract.Protocol},
		{errors.New("http2: client conn not usable"), contract.Truncated},
		{fmt.Errorf("x: %w", contract.Failed(contract.Digest, "y")), contract.Digest},
		{errors.New("something else"), contract.Other},
	} {
		if got := Kind(c.err); got != c.want {
			t.Errorf("%v is %v, not %v", c.err, got, c.want)
		}
	}
}

// The real error of net/http for a stream that its peer reset.
func TestAStreamOfHTTP2ThatWasResetIsReset(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	response, err := server.Client().Get(server.URL)
	if err == nil {
		_, err = io.ReadAll(response.Body)
	}
	if err == nil || Kind(err) != contract.Reset {
		t.Errorf("%v is not a reset", err)
	}
}
