// pause holds the namespaces of a pod until a signal ends it. It reaps no processes, because the pods of the tests
// share no process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
