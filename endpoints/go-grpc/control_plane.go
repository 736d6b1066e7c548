//go:build xds

package main

import (
	"context"
	"errors"
	"net"
	"strconv"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	xds "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"wirelab/endpoint/contract"
)

// controlPlane tells clients by xDS (ADS, in clear text) the servers of a name.
type controlPlane struct {
	spec      *contract.ControlPlaneSpec
	grpc      *grpc.Server
	port      int
	snapshots cache.SnapshotCache
	accepted  acknowledgements
	// version is that of the endpoints; everything else stays as it is.
	version uint64
	stop    context.CancelFunc
}

func newControlPlane(spec *contract.ControlPlaneSpec) (*controlPlane, error) {
	p := &controlPlane{spec: spec, grpc: grpc.NewServer(), snapshots: cache.NewSnapshotCache(true, allClients{}, nil)}
	if err := p.name(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", spec.Address.String())
	if err != nil {
		return nil, contract.Failed(contract.Other, "listening at %s: %v", spec.Address, err)
	}
	p.port = listener.Addr().(*net.TCPAddr).Port
	var serving context.Context
	serving, p.stop = context.WithCancel(context.Background())
	callbacks := xds.CallbackFuncs{
		StreamRequestFunc: p.accepted.request,
		StreamClosedFunc:  p.accepted.closed,
		DeltaStreamOpenFunc: func(context.Context, int64, string) error {
			return errors.New("the incremental variant of xDS is not offered, because its acknowledgements have no version")
		},
	}
	discovery.RegisterAggregatedDiscoveryServiceServer(p.grpc, xds.NewServer(serving, p.snapshots, callbacks))
	go func() {
		// It may begin after Stop.
		if err := p.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			contract.Finish(contract.Failed(contract.Other, "accepting connections: %v", err))
		}
	}()
	return p, nil
}

// name publishes the members in the file to clients.
func (p *controlPlane) name() error {
	members, err := p.spec.Members()
	if err != nil {
		return err
	}
	p.version++
	snapshot, err := snapshot(p.spec.ServerName, members, strconv.FormatUint(p.version, 10))
	if err != nil {
		return err
	}
	return p.snapshots.SetSnapshot(context.Background(), allClients{}.ID(nil), snapshot)
}

// Reach returns when every client that knows of endpoints has accepted the new ones.
func (p *controlPlane) Reach(ctx context.Context) error {
	if err := p.name(); err != nil {
		return err
	}
	return p.accepted.wait(ctx, strconv.FormatUint(p.version, 10))
}

func (p *controlPlane) Port() int { return p.port }
func (p *controlPlane) Configured() contract.Configured {
	return contract.Configured{"balance": "round robin"}
}

func (p *controlPlane) Stop() {
	p.stop()
	p.grpc.Stop()
}
