// crowd is a node of the cluster for hundreds of pods of wirelab on one machine. To the API server it is a kubelet. Its
// pods are processes, not containers, each in separate namespaces and with its own address. wirelab runs in them,
// whatever image they name.
//
// It reports pods as ready, runs commands in them (exec), and ends them. It has no probes, volumes, logs or limits.
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
	flag.StringVar(&settings.kubeconfig, "kubeconfig", "", "the kubeconfig file for the API server")
	flag.StringVar(&settings.certificate, "certificate", "", "its server certificate")
	flag.StringVar(&settings.key, "key", "", "the key of its certificate")
	flag.StringVar(&settings.authority, "authority", "", "the authority of client certificates that it accepts")
	flag.StringVar(&settings.program, "program", "", "the program of its pods")
	flag.TextVar(&settings.pods, "pods", netip.Prefix{}, "the addresses of its pods; the first is the address of the bridge `pods`")
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
	// Faster than a kubelet, because the tests do not measure the node.
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
