package main

import (
	"context"
	"encoding/json"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The port of a kubelet.
const port = 10250

// Reports show that the node is alive. The cluster regards a node as dead after some 50 s without a report.
const reportEvery = 10 * time.Second

// reportNode reports the node as ready, with more room than any single machine has.
func reportNode(ctx context.Context, client kubernetes.Interface, settings settings) {
	began := metav1.Now()
	for {
		report := map[string]any{"status": status(settings, began)}
		patch, err := json.Marshal(report)
		if err == nil {
			_, err = client.CoreV1().Nodes().Patch(ctx, settings.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			log.Println("reporting the node:", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportEvery):
		}
	}
}

func status(settings settings, began metav1.Time) corev1.NodeStatus {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("10Ti"),
		corev1.ResourcePods:   resource.MustParse("1000"),
	}
	return corev1.NodeStatus{
		Capacity:    room,
		Allocatable: room,
		Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: settings.address}},
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "CrowdReady", Message: "pods are processes",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: began,
		}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
	}
}
