// An endpoint of wirelab: HTTP/3 and bare QUIC by quic-go. See README.md.
package main

import (
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/role"
)

func main() {
	role.Main(role.Endpoint{
		Name:      "go-quic-go",
		Library:   "quic-go",
		Version:   role.ModuleVersion("github.com/quic-go/quic-go"),
		Protocols: []string{"h3", "quic"},
		Features:  []string{"files", "pages", "echo", "bytes", "delay", "heron"},
		Serve:     func(spec *contract.ServerSpec) (role.Server, error) { return newServer(spec) },
		Drive:     func(spec *contract.ClientSpec) (load.Driver, error) { return newDriver(spec) },
	})
}
