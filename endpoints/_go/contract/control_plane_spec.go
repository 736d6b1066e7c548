package contract

import (
	"encoding/json"
	"math"
	"net/netip"
	"os"
)

// ControlPlaneSpec is the spec of a control plane.
type ControlPlaneSpec struct {
	// Protocol is the one between clients and servers.
	Protocol   string
	Address    netip.AddrPort
	ServerName string
	// members is a file.
	members string
}

// ReadControlPlaneSpec takes every field of a spec, or says which one it cannot honour.
func ReadControlPlaneSpec(spec *Fields, protocols []string) (*ControlPlaneSpec, error) {
	s := &ControlPlaneSpec{Protocol: spec.Choose("protocol", protocols...), ServerName: spec.Text("server_name")}
	address, err := netip.ParseAddr(spec.Text("address"))
	if err != nil {
		spec.refuse("spec: `address`: %v", err)
	}
	s.Address = netip.AddrPortFrom(address, uint16(spec.Count("port", 0, math.MaxUint16)))
	s.members = spec.Text("members")
	spec.End()
	return s, spec.Err()
}

// Members are the servers, as the file names them now.
func (s *ControlPlaneSpec) Members() ([]netip.AddrPort, error) {
	text, err := os.ReadFile(s.members)
	if err != nil {
		return nil, Failed(Other, "reading who the members are: %v", err)
	}
	var members []netip.AddrPort
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, Failed(Other, "reading who the members are: %s is no list of addresses with ports: %v", s.members, err)
	}
	return members, nil
}
