package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Ready is the first event of both roles.
type Ready struct {
	Event      string     `json:"event"`
	Port       int        `json:"port,omitempty"`
	Configured Configured `json:"configured"`
}

// End closes the measured window.
type End struct {
	Event    string `json:"event"`
	WindowNs int64  `json:"window_ns"`
}

// Counted is a server's answer to `count`.
type Counted struct {
	Event    string `json:"event"`
	Requests uint64 `json:"requests"`
}

// Reached is a control plane's answer to `reach`.
type Reached struct {
	Event string `json:"event"`
}

// Done is the last event of both roles. A server leaves out errors.
type Done struct {
	Event      string            `json:"event"`
	Requests   uint64            `json:"requests"`
	Errors     map[string]uint64 `json:"errors,omitempty"`
	Configured Configured        `json:"configured"`
	Transport  any               `json:"transport,omitempty"`
}

// Emit prints one event, a JSON line, in one write.
func Emit(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(fmt.Sprintf("an event that is not JSON: %v", err))
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		// wirelab has closed the pipe: the event has no reader.
		os.Exit(1)
	}
}

// EmitWarm says that the measured window can begin.
func EmitWarm() {
	Emit(map[string]string{"event": "warm"})
}

// Finish maps the end of a role to the last event and the exit status; with nil, the role has printed `done` itself.
func Finish(err error) {
	if err == nil {
		os.Exit(0)
	}
	if unsupported, is := errors.AsType[*Unsupported](err); is {
		Emit(map[string]string{"event": "unsupported", "message": unsupported.Message})
		os.Exit(127)
	}
	kind := Other
	if failure, is := errors.AsType[*Failure](err); is {
		kind = failure.Kind
	}
	Emit(map[string]string{"event": "error", "kind": kind.String(), "message": err.Error()})
	os.Exit(1)
}
