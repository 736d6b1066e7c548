//go:build xds

package main

import (
	"math"
	"net/netip"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wirelab/endpoint/contract"
)

// allClients gives all clients one name, so that each gets the same resources.
type allClients struct{}

func (allClients) ID(*core.Node) string { return "all-clients" }

// aggregated is the source of all resources: the open stream.
var aggregated = &core.ConfigSource{
	ResourceApiVersion:    core.ApiVersion_V3,
	ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
}

// snapshot has the four resources of a name: a listener, which stands for the name; a route for all calls; a cluster of the
// servers, with the balancing policy; and the endpoints of this version.
func snapshot(name string, members []netip.AddrPort, version string) (*cache.Snapshot, error) {
	entrance, err := entrance(name)
	if err != nil {
		return nil, contract.Failed(contract.Other, "making the listener of %s: %v", name, err)
	}
	s := new(cache.Snapshot)
	for kind, resource := range map[types.ResponseType]types.Resource{
		types.Listener: entrance, types.Route: way(name), types.Cluster: servers(name),
	} {
		s.Resources[kind] = cache.NewResources("1", []types.Resource{resource})
	}
	s.Resources[types.Endpoint] = cache.NewResources(version, []types.Resource{endpoints(name, members)})
	return s, nil
}

func entrance(name string) (*listener.Listener, error) {
	filter, err := anypb.New(new(router.Router))
	if err != nil {
		return nil, err
	}
	http, err := anypb.New(&manager.HttpConnectionManager{
		RouteSpecifier: &manager.HttpConnectionManager_Rds{
			Rds: &manager.Rds{ConfigSource: aggregated, RouteConfigName: name},
		},
		HttpFilters: []*manager.HttpFilter{{
			Name: "router", ConfigType: &manager.HttpFilter_TypedConfig{TypedConfig: filter},
		}},
	})
	if err != nil {
		return nil, err
	}
	return &listener.Listener{Name: name, ApiListener: &listener.ApiListener{ApiListener: http}}, nil
}

func way(name string) *route.RouteConfiguration {
	return &route.RouteConfiguration{
		Name: name,
		VirtualHosts: []*route.VirtualHost{{
			Name:    name,
			Domains: []string{"*"},
			Routes: []*route.Route{{
				Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
				Action: &route.Route_Route{Route: &route.RouteAction{
					ClusterSpecifier: &route.RouteAction_Cluster{Cluster: name},
				}},
			}},
		}},
	}
}

func servers(name string) *cluster.Cluster {
	return &cluster.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig:     &cluster.Cluster_EdsClusterConfig{EdsConfig: aggregated},
		LbPolicy:             cluster.Cluster_ROUND_ROBIN,
		// Otherwise clients would let no more than 1024 calls be under way.
		CircuitBreakers: &cluster.CircuitBreakers{
			Thresholds: []*cluster.CircuitBreakers_Thresholds{{MaxRequests: wrapperspb.UInt32(math.MaxUint32)}},
		},
	}
}

func endpoints(name string, members []netip.AddrPort) *endpoint.ClusterLoadAssignment {
	all := &endpoint.LocalityLbEndpoints{
		// Clients ignore a place without name or weight.
		Locality:            &core.Locality{Zone: "wirelab"},
		LoadBalancingWeight: wrapperspb.UInt32(1),
	}
	for _, member := range members {
		address := &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
			Address:       member.Addr().String(),
			PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(member.Port())},
		}}}
		all.LbEndpoints = append(all.LbEndpoints, &endpoint.LbEndpoint{
			HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: address}},
		})
	}
	return &endpoint.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpoint.LocalityLbEndpoints{all}}
}
