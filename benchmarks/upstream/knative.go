// Measures how long Knative Eventing's scheduler takes to place the vreplicas of a source. `python -m benchmarks.knative --upstream` builds it in a
// checkout of knative/eventing.
//
// It reads an input as JSON: {"config": {"capacity": ...}, "resources": [Node, Pod, StatefulSet, ConfigMap, KafkaSource, ...]}. It prints the CPU
// milliseconds of the fastest call of Schedule, and the vreplicas that it places. Reading the input does not count.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/logging"

	duckv1alpha1 "knative.dev/eventing/pkg/apis/duck/v1alpha1"
	"knative.dev/eventing/pkg/scheduler"
	"knative.dev/eventing/pkg/scheduler/statefulset"
)

const (
	rounds = 3
	// After a call that takes so many seconds, there is no further one.
	longCall = 2
)

// source is a KafkaSource as the scheduler sees it.
type source struct {
	Metadata metav1.ObjectMeta
	Spec     struct{ Consumers int32 }
}

func (s *source) GetKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name}
}
func (s *source) GetVReplicas() int32                     { return s.Spec.Consumers }
func (s *source) GetPlacements() []duckv1alpha1.Placement { return nil }
func (s *source) GetResourceVersion() string              { return s.Metadata.ResourceVersion }

// readPolicy reads the data of a ConfigMap as the controller of sources does.
func readPolicy(data map[string]string) *scheduler.SchedulerPolicy {
	policy := &scheduler.SchedulerPolicy{}
	for name, into := range map[string]any{"predicates": &policy.Predicates, "priorities": &policy.Priorities} {
		if text, found := data[name]; found {
			check(json.Unmarshal([]byte(text), into))
		}
	}
	return policy
}

func main() {
	var input struct {
		Config    struct{ Capacity int32 }
		Resources []json.RawMessage
	}
	check(json.NewDecoder(os.Stdin).Decode(&input))
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	policies := map[string]*scheduler.SchedulerPolicy{}
	var workload *appsv1.StatefulSet
	var placed *source
	for _, document := range input.Resources {
		switch kind := decode[runtime.TypeMeta](document).Kind; kind {
		case "Node":
			check(nodes.Add(decode[corev1.Node](document)))
		case "Pod":
			check(pods.Add(decode[corev1.Pod](document)))
		case "ConfigMap":
			config := decode[corev1.ConfigMap](document)
			policies[config.Name] = readPolicy(config.Data)
		case "StatefulSet":
			workload = decode[appsv1.StatefulSet](document)
		case "KafkaSource":
			placed = decode[source](document)
		}
	}

	fastest, replicas := 0.0, int32(0)
	for round := 0; round < rounds && fastest < longCall; round++ {
		spent, placements := schedule(nodes, pods, policies, workload, placed, input.Config.Capacity)
		replicas = scheduler.GetTotalVReplicas(placements)
		if round == 0 || spent < fastest {
			fastest = spent
		}
	}
	fmt.Printf("%.3f %d\n", fastest*1000, replicas)
}

// schedule places the source with a new scheduler, because one that has placed it before has reserved the capacity. It returns the CPU seconds too.
func schedule(
	nodes, pods cache.Indexer, policies map[string]*scheduler.SchedulerPolicy, workload *appsv1.StatefulSet, placed *source, capacity int32,
) (float64, []duckv1alpha1.Placement) {
	client := fake.NewSimpleClientset(workload)
	client.PrependReactor("get", "statefulsets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		scale := &autoscalingv1.Scale{ObjectMeta: workload.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: *workload.Spec.Replicas}}
		return action.GetSubresource() == "scale", scale, nil
	})
	silent := logging.WithLogger(context.Background(), zap.NewNop().Sugar())
	ctx, cancel := context.WithCancel(context.WithValue(silent, kubeclient.Key{}, client))
	defer cancel()
	one, err := statefulset.New(ctx, &statefulset.Config{
		StatefulSetNamespace: workload.Namespace,
		StatefulSetName:      workload.Name,
		ScaleCacheConfig:     scheduler.ScaleCacheConfig{RefreshPeriod: time.Hour},
		PodCapacity:          capacity,
		RefreshPeriod:        time.Hour,
		RetryPeriod:          time.Hour,
		SchedPolicy:          policies["config-scheduler"],
		DeschedPolicy:        policies["config-descheduler"],
		VPodLister:           func() ([]scheduler.VPod, error) { return []scheduler.VPod{placed}, nil },
		NodeLister:           corev1listers.NewNodeLister(nodes),
		PodLister:            corev1listers.NewPodLister(pods).Pods(workload.Namespace),
	})
	check(err)
	start := cpuSeconds()
	placements, err := one.Schedule(ctx, placed)
	check(err)
	return cpuSeconds() - start, placements
}
