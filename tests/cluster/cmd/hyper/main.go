// hyper is Kubernetes in one file: `hyper COMPONENT [flags]`. One program instead of seven is linked and stored once,
// and all processes of the cluster share its pages.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of clients, as in the components' own programs
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          daemon(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
	"kube-controller-manager": daemon(func() *cobra.Command { return controllers.NewControllerManagerCommand() }),
	"kube-scheduler":          daemon(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 daemon(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kube-proxy":              daemon(func() *cobra.Command { return proxy.NewProxyCommand() }),
	"kubectl":                 func() { util.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())) },
}

func main() {
	// Each component takes its first argument as its name.
	os.Args = os.Args[1:]
	if len(os.Args) > 0 {
		if run, known := components[os.Args[0]]; known {
			run()
			return
		}
	}
	fmt.Fprintln(os.Stderr, "hyper: expected a component: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy or kubectl")
	os.Exit(2)
}

// daemon creates the command only when it runs, because commands of different components set the same globals.
func daemon(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}
