// An endpoint of wirelab: HTTP/1.1 and HTTP/2 by Go's net/http. See README.md.
package main

import (
	"runtime"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
	"wirelab/endpoint/role"
)

func main() {
	role.Main(role.Endpoint{
		Name:      "go-net-http",
		Library:   "net/http",
		Version:   runtime.Version(),
		Protocols: []string{"h1c", "h1", "h2c", "h2"},
		Features:  []string{"files", "pages", "echo", "bytes", "delay", "heron"},
		Serve:     func(spec *contract.ServerSpec) (role.Server, error) { return newServer(spec) },
		Drive:     func(spec *contract.ClientSpec) (load.Driver, error) { return newDriver(spec) },
	})
}

func isHTTP2(protocol string) bool { return protocol == "h2" || protocol == "h2c" }
