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
	// Discovers says whether the client can ask a control plane for servers.
	Discovers bool
	// Direct makes a control plane from a spec; nil if the endpoint plays none.
	Direct func(*contract.ControlPlaneSpec) (ControlPlane, error)
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
	case len(arguments) == 3 && arguments[0] == "control-plane" && arguments[1] == "--spec" && e.Direct != nil:
		contract.Finish(e.controlPlane(arguments[2]))
	default:
		more := ""
		if e.Direct != nil {
			more = " | control-plane --spec FILE"
		}
		fmt.Fprintf(os.Stderr, "usage: %s describe | server --spec FILE | client --spec FILE%s\n", e.Name, more)
		os.Exit(2)
	}
}

func (e *Endpoint) describe() {
	all := &abilities{e.Protocols, e.Features}
	var directs *abilities
	if e.Direct != nil {
		directs = &abilities{e.Protocols, []string{}}
	}
	line, err := json.Marshal(struct {
		Contract     int        `json:"contract"`
		Name         string     `json:"name"`
		Library      string     `json:"library"`
		Version      string     `json:"version"`
		Language     string     `json:"language"`
		Server       *abilities `json:"server"`
		Client       *abilities `json:"client"`
		ControlPlane *abilities `json:"control_plane,omitempty"`
	}{contract.Version, e.Name, e.Library, e.Version, "Go", all, all, directs})
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
	if spec.Discovers && !e.Discovers {
		return contract.Refuse("spec: `discovers`: %s asks no control plane", e.Library)
	}
	driver, err := e.Drive(spec)
	if err != nil {
		return err
	}
	return load.Run(spec, driver)
}

func (e *Endpoint) controlPlane(path string) error {
	fields, err := contract.ReadSpec(path)
	if err != nil {
		return err
	}
	spec, err := contract.ReadControlPlaneSpec(fields, e.Protocols)
	if err != nil {
		return err
	}
	return direct(spec, e.Direct)
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
