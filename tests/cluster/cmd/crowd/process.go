package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// process is the first process of a pod. All other processes of the pod end with it, because its PID namespace does.
type process struct {
	namespace, name string
	address         netip.Addr
	command         *exec.Cmd
}

// The shell command before the pod's command: it mounts separate /proc and /sys, and the pod's folder.
const prelude = `mount --make-rprivate / && mount -t proc proc /proc && mount -t sysfs sysfs /sys && mkdir -p "$1" && mount -t tmpfs tmpfs "$1" && shift && exec "$@"`

// startProcess starts the pod's command in separate namespaces, with this address.
func startProcess(settings settings, pod *corev1.Pod, address netip.Addr) (*process, error) {
	container := pod.Spec.Containers[0]
	if len(container.VolumeMounts) != 1 || len(container.Command) == 0 {
		return nil, fmt.Errorf("expected a pod of wirelab, with a command and one folder")
	}
	words := append([]string{"-c", prelude, "sh", container.VolumeMounts[0].MountPath, settings.program}, container.Command[1:]...)
	command := exec.Command("/bin/sh", words...)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	process := &process{namespace: pod.Namespace, name: pod.Name, address: address, command: command}
	go func() { _ = command.Wait() }() // reaps the process
	if err := process.connect(settings.pods); err != nil {
		process.end()
		return nil, err
	}
	return process, nil
}

// connect joins the pod to the bridge by a pair of interfaces, which vanishes with the pod.
func (process *process) connect(pods netip.Prefix) error {
	pid := strconv.Itoa(process.command.Process.Pid)
	outside := "pod" + pid
	if err := ip(nil, fmt.Sprintf("link add %s mtu 1450 type veth peer name eth0 mtu 1450 netns %s\nlink set %s master pods up\n", outside, pid, outside)); err != nil {
		return err
	}
	gateway := pods.Masked().Addr().Next()
	return ip([]string{"nsenter", "--target", pid, "--net"}, fmt.Sprintf(
		"link set lo up\naddress add %s/%d dev eth0\nlink set eth0 up\nroute add default via %s\n", process.address, pods.Bits(), gateway))
}

// ip runs the program ip with a batch of commands. The words `within` go before it, to enter namespaces.
func ip(within []string, batch string) error {
	words := append(within, "ip", "-batch", "-")
	command := exec.Command(words[0], words[1:]...)
	command.Stdin = strings.NewReader(batch)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

func (process *process) end() {
	_ = process.command.Process.Kill() // the process may have ended already
}

// within returns a command in the namespaces of the pod.
func (process *process) within(program string, words []string) *exec.Cmd {
	pid := strconv.Itoa(process.command.Process.Pid)
	enter := []string{"--target", pid, "--net", "--mount", "--pid", "--ipc", "--", program}
	return exec.Command("nsenter", append(enter, words...)...)
}
