package main

import (
	"context"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"wirelab/endpoint/clock"
	"wirelab/endpoint/contract"
	"wirelab/endpoint/heron"
	"wirelab/endpoint/load"
)

// unary is the stream of a unary call.
var unary grpc.StreamDesc

// call is the call of the spec.
type call struct {
	// context has the metadata.
	context context.Context
	number  *wrapperspb.DoubleValue
	// root is the right answer; NaN where there is none, and the server is to refuse.
	root float64
}

func newCall(spec *contract.ClientSpec) (*call, error) {
	wanted := spec.Request
	number, is := heron.Number(wanted.Path)
	if !is {
		return nil, contract.Refuse("request: `path` = %q; gRPC has a call for `/heron/NUMBER` and nothing else", wanted.Path)
	}
	message := wrapperspb.Double(number)
	if size := uint64(proto.Size(message)); size != wanted.BodySize {
		return nil, contract.Refuse("request: `body_size` = %d; the message that holds %v has %d bytes", wanted.BodySize, number, size)
	}
	fields := metadata.MD{}
	for _, field := range wanted.Headers {
		name := strings.ToLower(field[0])
		if name == "user-agent" || name == "content-type" || name == "te" || strings.HasPrefix(name, "grpc-") {
			return nil, contract.Refuse("request: `headers`: grpc-go writes `%s` itself", field[0])
		}
		if strings.HasSuffix(name, "-bin") {
			return nil, contract.Refuse("request: `headers`: grpc-go would encode `%s`, as metadata of that name is to be", field[0])
		}
		fields.Append(name, field[1])
	}
	return &call{metadata.NewOutgoingContext(context.Background(), fields), message, heron.Root(number)}, nil
}

// make makes the call over a connection.
func (k *call) make(ctx context.Context, c *connection, scratch *load.Scratch, look func([]byte)) (
	answer load.Answer, failure *contract.Failure) {
	root, is := scratch.Own.(*wrapperspb.DoubleValue)
	if !is {
		root = new(wrapperspb.DoubleValue)
		scratch.Own = root
	}
	// The same as a generated client does, but in steps, so that it shows when the answer begins.
	stream, err := c.channel.NewStream(ctx, &unary, "/"+service+"/"+method)
	if err != nil {
		return answer, c.failure(err)
	}
	// At its end the stream has an error, which receiving tells.
	if err := stream.SendMsg(k.number); err != nil && err != io.EOF {
		return answer, c.failure(err)
	}
	_, headless := stream.Header()
	begun := clock.Now()
	if err := stream.RecvMsg(root); err != nil {
		return answer, c.failure(err)
	}
	if headless != nil {
		return answer, c.failure(headless)
	}
	answer = load.Answer{FirstByte: begun, LastByte: clock.Now(), BytesIn: uint64(proto.Size(root))}
	if look != nil {
		text, err := proto.Marshal(root)
		if err != nil {
			return answer, contract.Failed(contract.Other, "encoding the answer for its digest: %v", err)
		}
		look(text)
	}
	if root.Value != k.root {
		return answer, contract.Failed(contract.Digest, "the answer to %v is %v instead of %v", k.number.Value, root.Value, k.root)
	}
	return answer, nil
}

// failure is what went wrong with a call. grpc-go has one error for what the server says and for what the connection
// does, and tells them apart in its text only.
func (c *connection) failure(err error) *contract.Failure {
	told := status.Convert(err)
	return contract.Failed(c.kind(told), "calling by gRPC: `grpc-status` %d (%s): %s", told.Code(), told.Code(), told.Message())
}

func (c *connection) kind(told *status.Status) contract.Kind {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(told.Message(), part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("unexpected HTTP status code"):
		return contract.Status
	case c.tcp.WasReset(), has("RST_STREAM", "connection reset", "GOAWAY", "connection is draining"):
		return contract.Reset
	case has("EOF", "error reading from server", "transport is closing", errBroken.Error()):
		return contract.Truncated
	case told.Code() == codes.Internal, told.Code() == codes.Unknown, has("malformed", "protocol error"):
		return contract.Protocol
	}
	return contract.Status
}
