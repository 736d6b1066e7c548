//go:build xds

package main

import (
	"context"
	"errors"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
)

// asks is a request for endpoints by a client that has accepted a version.
func asks(version string, names ...string) *discovery.DiscoveryRequest {
	return &discovery.DiscoveryRequest{TypeUrl: resource.EndpointType, VersionInfo: version, ResourceNames: names}
}

// isWaited says whether an acknowledgement is missing.
func isWaited(t *testing.T, a *acknowledgements, version string) bool {
	t.Helper()
	changed, err := a.missing(version)
	if err != nil {
		t.Fatal(err)
	}
	return changed != nil
}

func TestEveryClientThatAskedForEndpointsIsWaitedFor(t *testing.T) {
	a := new(acknowledgements)
	if isWaited(t, a, "1") {
		t.Error("no client has asked yet, so none can acknowledge")
	}
	request := func(stream int64, r *discovery.DiscoveryRequest) {
		if err := a.request(stream, r); err != nil {
			t.Fatal(err)
		}
	}
	request(1, &discovery.DiscoveryRequest{TypeUrl: resource.ClusterType})
	if isWaited(t, a, "1") {
		t.Error("who does not know of endpoints needs no others")
	}
	request(1, asks("", "name"))
	if !isWaited(t, a, "1") {
		t.Error("who has asked has accepted nothing yet")
	}
	request(1, asks("1", "name"))
	request(2, asks("1", "name"))
	if isWaited(t, a, "1") || !isWaited(t, a, "2") {
		t.Error("both have accepted the first version alone")
	}
	request(1, asks("2", "name"))
	if !isWaited(t, a, "2") {
		t.Error("the second client has not accepted it")
	}
	a.closed(2, nil)
	if isWaited(t, a, "2") {
		t.Error("the second client is gone")
	}
	request(1, asks("2"))
	if isWaited(t, a, "3") {
		t.Error("the first client does not want to know any more")
	}
}

func TestWaitingEndsWithTheLastAcknowledgementWithARefusalAndWithTheContext(t *testing.T) {
	a := new(acknowledgements)
	wait := func(ctx context.Context, version string) chan error {
		ended := make(chan error)
		go func() { ended <- a.wait(ctx, version) }()
		return ended
	}
	_ = a.request(1, asks("1", "name"))
	accepted := wait(t.Context(), "2")
	_ = a.request(2, asks("", "name")) // wakes it in vain
	_ = a.request(1, asks("2", "name"))
	_ = a.request(2, asks("2", "name"))
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	abandoned := wait(ctx, "3")
	cancel()
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	refused := wait(t.Context(), "3")
	refusal := asks("2", "name")
	refusal.ErrorDetail = &status.Status{Message: "no such thing"}
	_ = a.request(1, refusal)
	if err := <-refused; err == nil {
		t.Error("a refusal is no acknowledgement")
	}
}
