package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// The number of pods that start at a time.
const startersAtOnce = 8

// pods holds the pods of the node.
type pods struct {
	client   kubernetes.Interface
	settings settings
	starting chan struct{}

	mutex sync.Mutex
	known map[types.UID]*process // nil while the process starts
	taken map[netip.Addr]bool
}

func newPods(client kubernetes.Interface, settings settings) *pods {
	return &pods{
		client: client, settings: settings, starting: make(chan struct{}, startersAtOnce),
		known: map[types.UID]*process{}, taken: map[netip.Addr]bool{},
	}
}

// watch starts and ends processes to match the pods of the API server.
func (pods *pods) watch(ctx context.Context) {
	ours := informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", pods.settings.name).String()
	})
	factory := informers.NewSharedInformerFactoryWithOptions(pods.client, 0, ours)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { pods.look(ctx, object) },
		UpdateFunc: func(_, object any) { pods.look(ctx, object) },
		DeleteFunc: func(object any) {
			if last, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
				object = last.Obj
			}
			if pod, isPod := object.(*corev1.Pod); isPod {
				pods.end(pod)
			}
		},
	})
	if err != nil {
		log.Println("watching pods:", err)
		return
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
}

// look starts or ends a pod's process to match the pod's object.
func (pods *pods) look(ctx context.Context, object any) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return
	}
	if pod.DeletionTimestamp != nil {
		pods.end(pod)
		now := int64(0)
		err := pods.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
			log.Printf("deleting the pod %s/%s: %v", pod.Namespace, pod.Name, err)
		}
		return
	}
	pods.mutex.Lock()
	_, isKnown := pods.known[pod.UID]
	pods.known[pod.UID] = pods.known[pod.UID]
	pods.mutex.Unlock()
	if !isKnown {
		go pods.start(ctx, pod)
	}
}

func (pods *pods) start(ctx context.Context, pod *corev1.Pod) {
	pods.starting <- struct{}{}
	defer func() { <-pods.starting }()
	address, err := pods.take()
	var process *process
	if err == nil {
		process, err = startProcess(pods.settings, pod, address)
	}
	if err == nil && !pods.keep(pod, process) {
		return // the pod was deleted meanwhile
	}
	report := running(pod, pods.settings.address, address)
	if err != nil {
		log.Printf("starting the pod %s/%s: %v", pod.Namespace, pod.Name, err)
		report = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "CannotStart", Message: err.Error()}
	}
	patch, err := json.Marshal(map[string]any{"status": report})
	if err == nil {
		_, err = pods.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !errors.IsNotFound(err) {
		log.Printf("reporting the pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
}

// keep records a process, or ends it if its pod is gone by now.
func (pods *pods) keep(pod *corev1.Pod, process *process) bool {
	pods.mutex.Lock()
	defer pods.mutex.Unlock()
	if _, isWanted := pods.known[pod.UID]; !isWanted {
		process.end()
		delete(pods.taken, process.address)
		return false
	}
	pods.known[pod.UID] = process
	return true
}

func (pods *pods) end(pod *corev1.Pod) {
	pods.mutex.Lock()
	defer pods.mutex.Unlock()
	if process := pods.known[pod.UID]; process != nil {
		process.end()
		delete(pods.taken, process.address)
	}
	delete(pods.known, pod.UID)
}

// of finds the process of a pod by its name.
func (pods *pods) of(namespace, name string) (*process, error) {
	pods.mutex.Lock()
	defer pods.mutex.Unlock()
	for _, process := range pods.known {
		if process != nil && process.namespace == namespace && process.name == name {
			return process, nil
		}
	}
	return nil, fmt.Errorf("no pod %s/%s runs on the node %s", namespace, name, pods.settings.name)
}

// take returns an unused address. The first address belongs to the bridge.
func (pods *pods) take() (netip.Addr, error) {
	pods.mutex.Lock()
	defer pods.mutex.Unlock()
	address := pods.settings.pods.Masked().Addr().Next().Next()
	for ; pods.settings.pods.Contains(address.Next()); address = address.Next() {
		if !pods.taken[address] {
			pods.taken[address] = true
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %v are taken", pods.settings.pods)
}

func running(pod *corev1.Pod, node string, address netip.Addr) corev1.PodStatus {
	now := metav1.Now()
	isTrue := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
	}
	started := true
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, HostIP: node,
		PodIP: address.String(), PodIPs: []corev1.PodIP{{IP: address.String()}},
		Conditions: []corev1.PodCondition{isTrue(corev1.PodInitialized), isTrue(corev1.ContainersReady), isTrue(corev1.PodReady)},
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return status
}
