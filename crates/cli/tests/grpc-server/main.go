// A server of grpc-go with its own test service (google.golang.org/grpc/interop), which has all four kinds of methods.
//
//	grpc-server ADDRESS            serves with reflection, and prints the address
//	grpc-server ADDRESS v1alpha    serves with the first version of reflection only
//	grpc-server ADDRESS plain      serves without reflection
//	grpc-server describe           prints the descriptors of the service as protoc would write them
package main

import (
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
	v1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if os.Args[1] == "describe" {
		os.Stdout.Write(descriptors())
		return
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, interop.NewTestServer())
	switch {
	case len(os.Args) < 3:
		reflection.RegisterV1(server)
	case os.Args[2] == "v1alpha":
		first := reflection.NewServer(reflection.ServerOptions{Services: server})
		v1alpha.RegisterServerReflectionServer(server, first)
	}
	os.Stdout.WriteString(listener.Addr().String() + "\n")
	log.Fatal(server.Serve(listener))
}

// Returns a FileDescriptorSet of the service's file and all its imports, imports first.
func descriptors() []byte {
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(file protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	add(testgrpc.File_grpc_testing_test_proto)
	bytes, err := proto.Marshal(set)
	if err != nil {
		log.Fatal(err)
	}
	return bytes
}
