package contract

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// example is one of the contract's examples as an object that a test can change.
func example(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "contract", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

var (
	protocols = []string{"h1c", "h1", "h2"}
	features  = []string{"files", "bytes"}
)

func readClient(spec map[string]any) (*ClientSpec, error) {
	text, _ := json.Marshal(spec)
	return ReadClientSpec(Parse(text), protocols)
}

func readServer(spec map[string]any) (*ServerSpec, error) {
	text, _ := json.Marshal(spec)
	return ReadServerSpec(Parse(text), protocols, features)
}

func TestTheExamplesAreRead(t *testing.T) {
	spec := example(t, "client-spec.json")
	delete(spec, "contract") // taken before
	client, err := readClient(spec)
	if err != nil {
		t.Fatal(err)
	}
	if client.Connections != 2 || client.Schedule.MaxPause != 1_000_000 || client.WarmUp.Requests != 10 || client.Seed != 42 ||
		client.ConnectTimeout != 5*time.Second || client.Request.Expect.BodySize != 5 || *client.Transport.Congestion != "cubic" {
		t.Errorf("the client's spec was read as %+v", client)
	}
	spec = example(t, "server-spec.json")
	delete(spec, "contract")
	server, err := readServer(spec)
	if err != nil {
		t.Fatal(err)
	}
	if server.TLS.Resumption || server.DocumentRoot == "" || !server.Wants("files") || server.Wants("bytes") || !*server.Transport.NoDelay {
		t.Errorf("the server's spec was read as %+v", server)
	}
}

// change sets a value at a path of names; without a value it deletes it.
func change(spec map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		spec = spec[name].(map[string]any)
	}
	if name := path[len(path)-1]; value == nil {
		delete(spec, name)
	} else {
		spec[name] = value
	}
}

func TestWhatCannotBeHonouredIsUnsupported(t *testing.T) {
	type object = map[string]any
	for _, c := range []struct {
		path  []string
		value any
	}{
		{[]string{"protocol"}, "h3"},
		{[]string{"Protocol"}, "h1"}, // names are exact
		{[]string{"x"}, 1},
		{[]string{"tls", "x"}, 1},
		{[]string{"tls", "verify"}, "yes"},
		{[]string{"request", "x"}, 1},
		{[]string{"request", "method"}, nil},
		{[]string{"request", "body_size"}, -1},
		{[]string{"request", "body_size"}, 1.5},
		{[]string{"request", "expect", "x"}, 1},
		{[]string{"connections", "policy"}, "x"},
		{[]string{"connections", "streams"}, 2}, // of HTTP/1.1
		{[]string{"connections", "connections"}, 0},
		{[]string{"schedule", "loop"}, "x"},
		{[]string{"schedule", "workers"}, 0},
		{[]string{"schedule", "pause"}, object{"kind": "x"}},
		{[]string{"schedule", "pause"}, object{"kind": "none", "ns": 1}},
		{[]string{"schedule", "pause"}, object{"kind": "uniform", "min_ns": 2, "max_ns": 1}},
		{[]string{"schedule"}, object{"loop": "open", "rate_per_s": 0, "arrivals": "poisson"}},
		{[]string{"schedule"}, object{"loop": "open", "rate_per_s": 5, "arrivals": "x"}},
		{[]string{"extent"}, object{"x": 1}},
		{[]string{"extent"}, object{"requests": 1, "duration_ns": 1}},
		{[]string{"extent"}, object{"requests": 0}},
		{[]string{"resumption"}, "x"},
		{[]string{"timeouts", "x"}, 1},
		{[]string{"timeouts", "connect_ns"}, 0},
		{[]string{"seed"}, nil},
		{[]string{"recording"}, "x"},
		{[]string{"transport", "x"}, 1},
		{[]string{"transport", "congestion"}, "x"},
		{[]string{"threads"}, 0},
		{[]string{"addresses"}, []string{"server.test"}},
	} {
		spec := example(t, "client-spec.json")
		delete(spec, "contract")
		change(spec, c.path, c.value)
		_, err := readClient(spec)
		if _, is := errors.AsType[*Unsupported](err); !is {
			t.Errorf("%v = %v: %v", c.path, c.value, err)
		}
	}
}

func TestConnectionsGoToTheServersInTurn(t *testing.T) {
	spec := example(t, "client-spec.json")
	delete(spec, "contract")
	alone, err := readClient(spec)
	if err != nil || alone.NextServer() != alone.Address || alone.NextServer() != alone.Address {
		t.Errorf("%v, %v", alone, err)
	}
	spec = example(t, "client-spec.json")
	delete(spec, "contract")
	spec["addresses"] = []string{"127.0.0.1", "127.0.0.2"}
	several, err := readClient(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.1"} {
		if next := several.NextServer(); next.Addr().String() != wanted || next.Port() != several.Address.Port() {
			t.Errorf("%v instead of %s", next, wanted)
		}
	}
}

func TestTLSIsThereExactlyWhereTheProtocolHasIt(t *testing.T) {
	for _, c := range []struct {
		protocol string
		keep     bool
	}{{"h1c", true}, {"h1", false}} {
		spec := example(t, "client-spec.json")
		delete(spec, "contract")
		spec["protocol"] = c.protocol
		if !c.keep {
			delete(spec, "tls")
		}
		if _, err := readClient(spec); err == nil {
			t.Errorf("%s with tls %v is read", c.protocol, c.keep)
		}
	}
}

func TestAFieldThatIsNullIsAbsent(t *testing.T) {
	spec := example(t, "server-spec.json")
	delete(spec, "contract")
	spec["threads"], spec["qlog_dir"], spec["transport"] = json.RawMessage("null"), json.RawMessage("null"), json.RawMessage(`{"gso":null}`)
	server, err := readServer(spec)
	if err != nil || server.Threads != 0 || server.Transport.GSO != nil {
		t.Errorf("read as %+v, %v", server, err)
	}
}

func TestOnlyRefusesTheSettingsThatAreNotNamed(t *testing.T) {
	on := true
	transport := Transport{GSO: &on, NoDelay: &on}
	if err := transport.Only("why", "gso", "no_delay", "gro"); err != nil {
		t.Error(err)
	}
	if err := transport.Only("why", "no_delay"); err == nil {
		t.Error("`gso` was not refused")
	}
}

func TestAControlPlaneReadsItsMembersAgain(t *testing.T) {
	members := filepath.Join(t.TempDir(), "members.json")
	spec := example(t, "control-plane-spec.json")
	delete(spec, "contract")
	spec["members"] = members
	text, _ := json.Marshal(spec)
	read, err := ReadControlPlaneSpec(Parse(text), []string{"grpcc"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string
		count int
	}{{`["127.0.0.1:80"]`, 1}, {`["127.0.0.1:80","127.0.0.1:81"]`, 2}, {`[]`, 0}} {
		if err := os.WriteFile(members, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := read.Members(); err != nil || len(found) != c.count {
			t.Errorf("%s: %v, %v", c.text, found, err)
		}
	}
	if err := os.WriteFile(members, []byte(`["server.test:80"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := read.Members(); err == nil {
		t.Errorf("a name was taken for an address: %v", found)
	}
	spec["x"] = 1
	text, _ = json.Marshal(spec)
	if _, err := ReadControlPlaneSpec(Parse(text), []string{"grpcc"}); err == nil {
		t.Error("an unknown field was taken")
	}
}
