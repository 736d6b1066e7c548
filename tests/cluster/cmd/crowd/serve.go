package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// A trial may be silent for hours.
const idleTimeout = 4 * time.Hour

// serve answers requests of the API server to run a command in a pod.
func serve(settings settings, pods *pods) error {
	authority, err := os.ReadFile(settings.authority)
	if err != nil {
		return err
	}
	known := x509.NewCertPool()
	if !known.AppendCertsFromPEM(authority) {
		return fmt.Errorf("%s has no certificate", settings.authority)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", func(response http.ResponseWriter, request *http.Request) {
		process, err := pods.of(request.PathValue("namespace"), request.PathValue("pod"))
		if err != nil {
			http.Error(response, err.Error(), http.StatusNotFound)
			return
		}
		options, err := remotecommand.NewOptions(request)
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		executor := executor{process: process, program: settings.program}
		remotecommand.ServeExec(response, request, executor, process.name, "", request.PathValue("container"), request.URL.Query()["command"],
			options, idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	})
	server := http.Server{
		Addr:      fmt.Sprintf("%s:%d", settings.address, port),
		Handler:   routes,
		TLSConfig: &tls.Config{ClientCAs: known, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"http/1.1"}},
		// Streams take over the connection, which HTTP/2 does not support.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	return server.ListenAndServeTLS(settings.certificate, settings.key)
}

type executor struct {
	process *process
	program string
}

// ExecInContainer runs a command in the pod until its end.
func (executor executor) ExecInContainer(
	_ context.Context, _, _, _ string, words []string, in io.Reader, out, err io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if len(words) == 0 || !strings.HasSuffix(words[0], "/wirelab") {
		return fmt.Errorf("pods of this node contain wirelab only, not %q", words)
	}
	command := executor.process.within(executor.program, words[1:])
	command.Stdout, command.Stderr = out, err
	if in == nil {
		return command.Run()
	}
	// Not as its Stdin: the command's end would wait for the end of its client's input.
	stdin, failure := command.StdinPipe()
	if failure != nil {
		return failure
	}
	if failure := command.Start(); failure != nil {
		return failure
	}
	go func() {
		_, _ = io.Copy(stdin, in) // fails if the command has ended
		_ = stdin.Close()
	}()
	return command.Wait()
}
