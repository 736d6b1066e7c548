//go:build xds

package main

import (
	_ "google.golang.org/grpc/xds" // the resolver of `xds:` and its balancers

	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/role"
)

// extend makes the endpoint go-grpc-xds, which asks control planes, and plays one.
func extend(e *role.Endpoint) {
	e.Name, e.Discovers = "go-grpc-xds", true
	e.Drive = func(spec *contract.ClientSpec) (load.Driver, error) {
		if spec.Discovers {
			if err := beginWithBootstrap(spec); err != nil {
				return nil, err
			}
		}
		return newDriver(spec)
	}
	e.Direct = func(spec *contract.ControlPlaneSpec) (role.ControlPlane, error) { return newControlPlane(spec) }
}
