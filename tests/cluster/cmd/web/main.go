// web is the program of the cluster's own tests in pods: a server that returns its name, and clients that print answers
// as JSON.
//
//	web serve            answers every GET on port 8080 with the name of its pod
//	web get URL COUNT    sends COUNT requests, each on a new connection: {"NAME": answers, ...}
//	web lookup NAME      the addresses of a name: ["10.244.1.2", ...]
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	result, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		os.Exit(1)
	}
}

func run(args []string) (any, error) {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 3 && args[0] == "get":
		return get(args[1], args[2])
	case len(args) == 2 && args[0] == "lookup":
		return net.LookupHost(args[1])
	}
	return nil, fmt.Errorf("expected `serve`, `get URL COUNT` or `lookup NAME`, not %q", args)
}

// serve ends on a signal, by a handler: the kernel sends the first process of a pod only signals with a handler.
func serve() (any, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- http.ListenAndServe(":8080", http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(answer, name)
		}))
	}()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	select {
	case err := <-ended:
		return nil, err
	case <-end:
		return "ended", nil
	}
}

func get(url, count string) (any, error) {
	times, err := strconv.Atoi(count)
	if err != nil {
		return nil, fmt.Errorf("expected a number of requests, not %q", count)
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answers := map[string]int{}
	for range times {
		name, err := ask(client, url)
		if err != nil {
			return nil, err
		}
		answers[name]++
	}
	return answers, nil
}

func ask(client http.Client, url string) (string, error) {
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s %v", url, answer.Status, err)
	}
	return strings.TrimSpace(string(body)), nil
}
