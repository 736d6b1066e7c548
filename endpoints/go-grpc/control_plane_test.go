//go:build xds

package main

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/xds"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/load"
)

// timeout of operations that take milliseconds.
const timeout = 20 * time.Second

const local = "127.0.0.1"

// serve starts a server of the calls.
func serve(t *testing.T) (*server, string) {
	t.Helper()
	address := netip.AddrPortFrom(netip.MustParseAddr(local), 0)
	spec := &contract.ServerSpec{Common: contract.Common{Protocol: "grpcc", Address: address}, Features: []string{"heron"}}
	s, err := newServer(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s, netip.AddrPortFrom(address.Addr(), uint16(s.port)).String()
}

// plane is a control plane with its file.
type plane struct {
	*controlPlane
	file string
}

func newPlane(t *testing.T, members ...string) plane {
	t.Helper()
	file := filepath.Join(t.TempDir(), "members.json")
	p := plane{file: file}
	p.write(t, members)
	text, _ := json.Marshal(map[string]any{
		"protocol": "grpcc", "address": local, "port": 0, "server_name": "server.test", "members": file,
	})
	spec, err := contract.ReadControlPlaneSpec(contract.Parse(text), []string{"grpcc"})
	if err != nil {
		t.Fatal(err)
	}
	if p.controlPlane, err = newControlPlane(spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func (p plane) write(t *testing.T, members []string) {
	t.Helper()
	text, _ := json.Marshal(members)
	if err := os.WriteFile(p.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// reach names members and waits until they are accepted.
func (p plane) reach(t *testing.T, members ...string) {
	t.Helper()
	p.write(t, members)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := p.Reach(ctx); err != nil {
		t.Fatal(err)
	}
}

// client is a channel of a client that asks the control plane.
func (p plane) client(t *testing.T) load.Connection {
	t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(local), uint16(p.port))
	spec := &contract.ClientSpec{
		Common:      contract.Common{Protocol: "grpcc", Address: at, ServerName: "server.test"},
		Discovers:   true,
		Request:     contract.Request{Path: "/heron/2", BodySize: 9},
		Connections: 1, Streams: 1, Resumption: "none",
	}
	d, err := newDriver(spec)
	if err != nil {
		t.Fatal(err)
	}
	// In place of the environment, which the whole program has once.
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap(at))
	if err != nil {
		t.Fatal(err)
	}
	d.options = append(d.options, grpc.WithResolvers(resolver))
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	opened, failure := d.Dial(ctx)
	if failure != nil {
		t.Fatal(failure)
	}
	t.Cleanup(opened.Connection.Abandon)
	return opened.Connection
}

// calls makes calls, and gives how many failed.
func calls(t *testing.T, c load.Connection, count int) (failed int) {
	t.Helper()
	for range count {
		scratch := &load.Scratch{}
		if _, failure := c.Exchange(scratch, clock.Now().Add(timeout), nil); failure != nil {
			t.Log(failure)
			failed++
		}
	}
	return failed
}

// untilAsked makes calls until one of them reaches a server.
func untilAsked(t *testing.T, c load.Connection, s *server) {
	t.Helper()
	for before, deadline := s.Answered(), time.Now().Add(timeout); s.Answered() == before; {
		if calls(t, c, 1) > 0 || time.Now().After(deadline) {
			t.Fatal("the server is not asked")
		}
	}
}

func TestCallsTakeTurnsOverTheServersThatAreNamed(t *testing.T) {
	one, first := serve(t)
	other, second := serve(t)
	p := newPlane(t, first)
	c := p.client(t)
	if calls(t, c, 10) > 0 || one.Answered() != 10 || other.Answered() != 0 {
		t.Fatalf("the one server has answered %d, the other %d", one.Answered(), other.Answered())
	}
	p.reach(t, first, second)
	// It has yet to be connected to.
	untilAsked(t, c, other)
	before := [2]uint64{one.Answered(), other.Answered()}
	if calls(t, c, 100) > 0 || one.Answered()-before[0] != 50 || other.Answered()-before[1] != 50 {
		t.Errorf("of 100 calls the one has answered %d, the other %d", one.Answered()-before[0], other.Answered()-before[1])
	}
}

func TestAServerThatIsNotNamedAnyMoreIsAskedNoMoreAndNothingFails(t *testing.T) {
	one, first := serve(t)
	other, second := serve(t)
	p := newPlane(t, first, second)
	c := p.client(t)
	untilAsked(t, c, one)
	untilAsked(t, c, other)
	p.reach(t, second)
	// The balancer has not yet applied the last acknowledged version.
	for last, deadline := uint64(0), time.Now().Add(timeout); last != one.Answered(); {
		last = one.Answered()
		if calls(t, c, 10) > 0 || time.Now().After(deadline) {
			t.Fatal("a call failed, or the server is still asked")
		}
	}
	before := one.Answered()
	if calls(t, c, 50) > 0 || one.Answered() != before {
		t.Errorf("the server that is gone was asked %d times", one.Answered()-before)
	}
}

func TestAServerThatDiesCostsNoMoreThanTheCallThatIsUnderWay(t *testing.T) {
	one, first := serve(t)
	other, second := serve(t)
	c := newPlane(t, first, second).client(t)
	untilAsked(t, c, one)
	untilAsked(t, c, other)
	// The control plane does not know of it.
	one.Stop()
	// One can be under way before the client has heard of it.
	if failed := calls(t, c, 50); failed > 1 {
		t.Errorf("%d calls failed", failed)
	}
}

func TestNobodyIsWaitedForWhereNobodyHasAskedAndMembersMustBeAddresses(t *testing.T) {
	p := newPlane(t)
	p.reach(t, "192.0.2.1:80")
	p.write(t, []string{"server.test:80"})
	if err := p.Reach(t.Context()); err == nil {
		t.Error("a name was taken for an address")
	}
}
