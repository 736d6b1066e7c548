// forward makes a TCP address of a network namespace reachable on this machine's loopback: `forward NAMESPACE ADDRESS`.
//
// It listens on a free port of 127.0.0.1, prints that address, and forwards connections until it is killed. The cluster
// therefore needs neither a fixed port nor an interface in the machine's network.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: forward NAMESPACE ADDRESS")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "forward:", forward(os.Args[1], os.Args[2]))
	os.Exit(1)
}

func forward(path, address string) error {
	namespace, err := os.Open(path)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			server, err := dialWithin(namespace, address)
			if err != nil {
				fmt.Fprintln(os.Stderr, "forward:", err)
				return
			}
			defer server.Close()
			carry(client.(*net.TCPConn), server.(*net.TCPConn))
		}()
	}
}

// dialWithin connects from a thread that enters the namespace. The thread ends with its goroutine, because it is never
// unlocked. The socket stays in the namespace.
func dialWithin(namespace *os.File, address string) (net.Conn, error) {
	type result struct {
		connection net.Conn
		err        error
	}
	dialled := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			dialled <- result{nil, fmt.Errorf("entering the network namespace %s: %w", namespace.Name(), err)}
			return
		}
		connection, err := net.Dial("tcp4", address)
		dialled <- result{connection, err}
	}()
	outcome := <-dialled
	return outcome.connection, outcome.err
}

// carry copies in both directions until both ends have finished.
func carry(client, server *net.TCPConn) {
	var both sync.WaitGroup
	for _, pair := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(pair[1], pair[0]) // the other end notices an error
			_ = pair[1].CloseWrite()
		})
	}
	both.Wait()
}
