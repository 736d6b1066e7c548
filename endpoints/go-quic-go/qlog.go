package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

// qlog writes a file for every connection.
type qlog struct {
	folder string
	open   sync.WaitGroup
}

// trace is what quic-go calls for a new connection.
func (q *qlog) trace(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	role := "server"
	if isClient {
		role = "client"
	}
	file, err := os.Create(filepath.Join(q.folder, fmt.Sprintf("%s-%s.sqlog", role, id)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "a connection without a qlog file: %v\n", err)
		return nil
	}
	q.open.Add(1)
	trace := qlogwriter.NewConnectionFileSeq(&qlogFile{bufio.NewWriterSize(file, 64*1024), file, q}, isClient, id)
	go trace.Run()
	return trace
}

// wait waits until the files of closed connections are complete.
func (q *qlog) wait() {
	complete := make(chan struct{})
	go func() {
		q.open.Wait()
		close(complete)
	}()
	select {
	case <-complete:
	case <-time.After(time.Second):
		fmt.Fprintln(os.Stderr, "qlog files of connections that did not end may be incomplete")
	}
}

// qlogFile is closed by quic-go when the last event is written.
type qlogFile struct {
	*bufio.Writer
	file *os.File
	qlog *qlog
}

func (f *qlogFile) Close() error {
	defer f.qlog.open.Done()
	return errors.Join(f.Flush(), f.file.Close())
}
