package main

import (
	"context"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
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
	// root is the right answer; NaN if the number has none, and the server must refuse.
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
			return nil, contract.Refuse("request: `headers`: grpc-go encodes `%s`, as the protocol demands of names with -bin", field[0])
		}
		fields.Append(name, field[1])
	}
	return &call{metadata.NewOutgoingContext(context.Background(), fields), message, heron.Root(number)}, nil
}

// make makes the call over a channel.
func (k *call) make(ctx context.Context, c *caller, scratch *load.Scratch, look func([]byte)) (
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
