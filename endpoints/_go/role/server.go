package role

import (
	"os"
	"runtime"
	"time"

	"wirelab/endpoint/contract"
	"wirelab/endpoint/transport"
)

// Server accepts connections from the moment when it was made.
type Server interface {
	Port() int
	Configured() contract.Configured
	// Stop closes the server and every open connection.
	Stop()
	Answered() uint64
	Accounts() *transport.Accounts
}

// stopping is the limit for Stop; the contract's limit is two seconds.
const stopping = 1500 * time.Millisecond

func serve(spec *contract.ServerSpec, start func(*contract.ServerSpec) (Server, error)) error {
	if spec.Threads > 0 {
		runtime.GOMAXPROCS(spec.Threads)
	}
	server, err := start(spec)
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	commands := contract.Listen(os.Stdin, "stop", func() { close(stopped) })
	configured := server.Configured()
	configured["threads"] = runtime.GOMAXPROCS(0)
	contract.Emit(contract.Ready{Event: "ready", Port: server.Port(), Configured: configured})
	commands.Each(stopped, func(text string) {
		if spec.Counts && text == "count" {
			contract.Emit(contract.Counted{Event: "counted", Requests: server.Answered()})
		}
	})
	// Open connections are read now, not at their end.
	report, answered := server.Accounts().Report(), server.Answered()
	closed := make(chan struct{})
	go func() {
		server.Stop()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(stopping):
	}
	contract.Emit(contract.Done{Event: "done", Requests: answered, Configured: contract.Configured{}, Transport: report})
	return nil
}
