package role

import (
	"context"
	"os"
	"time"

	"wirelab/endpoint/contract"
)

// ControlPlane tells clients the servers of a name, from its creation on.
type ControlPlane interface {
	Port() int
	Configured() contract.Configured
	// Reach tells them the new servers. It returns when each client has accepted them, or when the context ends.
	Reach(context.Context) error
	// Stop ends every conversation.
	Stop()
}

func direct(spec *contract.ControlPlaneSpec, start func(*contract.ControlPlaneSpec) (ControlPlane, error)) error {
	plane, err := start(spec)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	defer stop()
	commands := contract.Listen(os.Stdin, "stop", stop)
	contract.Emit(contract.Ready{Event: "ready", Port: plane.Port(), Configured: plane.Configured()})
	var failed error
	commands.Each(running.Done(), func(text string) {
		if text != "reach" {
			return
		}
		err := plane.Reach(running)
		switch {
		case running.Err() != nil:
		case err != nil:
			failed = err
			stop()
		default:
			contract.Emit(contract.Reached{Event: "reached"})
		}
	})
	if failed != nil {
		return failed
	}
	closed := make(chan struct{})
	go func() {
		plane.Stop()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(stopping):
	}
	contract.Emit(map[string]any{"event": "done", "configured": contract.Configured{}})
	return nil
}
