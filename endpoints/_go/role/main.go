// Package role is the entry point of every endpoint: its command line, and the conversation of its server.
package role

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

// Endpoint is one library in its roles.
type Endpoint struct {
	Name, Library, Version string
	Protocols              []string
	// Features that the endpoint offers as a server, and asks for as a client.
	Features []string
	Serve    func(*contract.ServerSpec) (Server, error)
	Drive    func(*contract.ClientSpec) (load.Driver, error)
}

type abilities struct {
	Protocols []string `json:"protocols"`
	Features  []string `json:"features"`
}

// Main does what the command line asks for, and does not return.
func Main(e Endpoint) {
	switch arguments := os.Args[1:]; {
	case slices.Equal(arguments, []string{"describe"}):
		e.describe()
	case len(arguments) == 3 && arguments[0] == "server" && arguments[1] == "--spec":
		contract.Finish(e.server(arguments[2]))
	case len(arguments) == 3 && arguments[0] == "client" && arguments[1] == "--spec":
		contract.Finish(e.client(arguments[2]))
	default:
		fmt.Fprintf(os.Stderr, "usage: %s describe | server --spec FILE | client --spec FILE\n", e.Name)
		os.Exit(2)
	}
}

func (e *Endpoint) describe() {
	all := &abilities{e.Protocols, e.Features}
	line, err := json.Marshal(struct {
		Contract int        `json:"contract"`
		Name     string     `json:"name"`
		Library  string     `json:"library"`
		Version  string     `json:"version"`
		Language string     `json:"language"`
		Server   *abilities `json:"server"`
		Client   *abilities `json:"client"`
	}{contract.Version, e.Name, e.Library, e.Version, "Go", all, all})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func (e *Endpoint) server(path string) error {
	fields, err := contract.ReadSpec(path)
	if err != nil {
		return err
	}
	spec, err := contract.ReadServerSpec(fields, e.Protocols, e.Features)
	if err != nil {
		return err
	}
	return serve(spec, e.Serve)
}

func (e *Endpoint) client(path string) error {
	fields, err := contract.ReadSpec(path)
	if err != nil {
		return err
	}
	spec, err := contract.ReadClientSpec(fields, e.Protocols)
	if err != nil {
		return err
	}
	driver, err := e.Drive(spec)
	if err != nil {
		return err
	}
	return load.Run(spec, driver)
}

// ModuleVersion is the version of a module that is linked into this program.
func ModuleVersion(path string) string {
	if info, has := debug.ReadBuildInfo(); has {
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}
