// crowd is a node of the cluster that carries hundreds of pods of wirelab on one machine: as far as the API server knows it is a
// kubelet. Its pods are not containers but processes, each in namespaces of its own with an address of its own; whatever image they
// name, wirelab runs in them.
//
// It reports pods as ready, runs commands in them (exec), and ends them. Probes, volumes, logs and limits it does not have.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type settings struct {
	name, address, kubeconfig, certificate, key, authority, program string
	pods                                                            netip.Prefix
}

func main() {
	var settings settings
	flag.StringVar(&settings.name, "name", "crowd", "the node's name")
	flag.StringVar(&settings.address, "address", "", "its address, at which the API server reaches it")
	flag.StringVar(&settings.kubeconfig, "kubeconfig", "", "how it reaches the API server")
	flag.StringVar(&settings.certificate, "certificate", "", "its certificate, as a server")
	flag.StringVar(&settings.key, "key", "", "the key of its certificate")
	flag.StringVar(&settings.authority, "authority", "", "whoever asks it has to have a certificate from this authority")
	flag.StringVar(&settings.program, "program", "", "the program that its pods run")
	flag.TextVar(&settings.pods, "pods", netip.Prefix{}, "the addresses of its pods; the first one is that of the bridge `pods`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, settings); err != nil {
		log.Fatalln("crowd:", err)
	}
}

func run(ctx context.Context, settings settings) error {
	if _, err := os.Stat(settings.program); err != nil {
		return fmt.Errorf("the program of the pods: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", settings.kubeconfig)
	if err != nil {
		return err
	}
	// A kubelet would be slower; it is not what is measured.
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pods := newPods(client, settings)
	serving := make(chan error, 1)
	go func() { serving <- serve(settings, pods) }()
	go reportNode(ctx, client, settings)
	go pods.watch(ctx)
	select {
	case err := <-serving:
		return err
	case <-ctx.Done():
		return nil
	}
}
