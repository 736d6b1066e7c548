// An endpoint of wirelab: gRPC by grpc-go. See README.md.
package main

import (
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/role"
)

const (
	service = "wirelab.Heron"
	method  = "SquareRoot"
)

func main() {
	e := role.Endpoint{
		Name:      "go-grpc",
		Library:   "grpc-go",
		Version:   role.ModuleVersion("google.golang.org/grpc"),
		Protocols: []string{"grpcc", "grpc"},
		Features:  []string{"heron"},
		Serve:     func(spec *contract.ServerSpec) (role.Server, error) { return newServer(spec) },
		Drive:     func(spec *contract.ClientSpec) (load.Driver, error) { return newDriver(spec) },
	}
	extend(&e)
	role.Main(e)
}
