//go:build xds

package main

import (
	"context"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"wirelab/endpoint/contract"
)

// acknowledgements are the versions of the endpoints that clients have accepted. A client accepts with its next request on the
// stream, which names the version; with its first one it names none.
type acknowledgements struct {
	lock sync.Mutex
	// of has the streams of clients that know of endpoints, or have asked for them.
	of      map[int64]string
	refused error
	// changed is closed at a change; nil if no goroutine waits.
	changed chan struct{}
}

// request hears of a request on a stream.
func (a *acknowledgements) request(stream int64, request *discovery.DiscoveryRequest) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	if why := request.GetErrorDetail(); why != nil {
		a.refused = contract.Failed(contract.Protocol, "a client rejects a resource (%s): %s", request.GetTypeUrl(), why.GetMessage())
	} else if request.GetTypeUrl() == resource.EndpointType && len(request.GetResourceNames()) > 0 {
		if a.of == nil {
			a.of = map[int64]string{}
		}
		a.of[stream] = request.GetVersionInfo()
	} else if request.GetTypeUrl() == resource.EndpointType {
		// The client has unsubscribed.
		delete(a.of, stream)
	}
	a.tell()
	return nil
}

// closed hears of the end of a stream.
func (a *acknowledgements) closed(stream int64, _ *core.Node) {
	a.lock.Lock()
	defer a.lock.Unlock()
	delete(a.of, stream)
	a.tell()
}

func (a *acknowledgements) tell() {
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// wait waits until all clients have accepted the newest version. A client that asks later for the first time gets the same.
func (a *acknowledgements) wait(ctx context.Context, version string) error {
	for {
		changed, err := a.missing(version)
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// missing is closed when something has changed; nil if no client is missing, or one has refused.
func (a *acknowledgements) missing(version string) (<-chan struct{}, error) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.refused != nil {
		return nil, a.refused
	}
	for _, accepted := range a.of {
		if accepted != version {
			if a.changed == nil {
				a.changed = make(chan struct{})
			}
			return a.changed, nil
		}
	}
	return nil, nil
}
