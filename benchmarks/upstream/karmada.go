// Measures how many bindings a CPU second Karmada's scheduler decides. `python -m benchmarks.karmada --upstream` builds it in a checkout of Karmada.
//
// It reads an input as JSON: {"resources": [Cluster, Deployment, PropagationPolicy, ...]}, where each policy names one Deployment. It prints
// the bindings per CPU second of the fastest round and the replicas that were assigned in total. Reading the input does not count.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	schedulercache "github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
)

const rounds = 3

// newBinding describes the binding that Karmada's detector makes for a Deployment and its policy.
func newBinding(deployment *appsv1.Deployment, policy *policyv1alpha1.PropagationPolicy) *workv1alpha2.ResourceBindingSpec {
	requests := corev1.ResourceList{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for name, quantity := range container.Resources.Requests {
			sum := requests[name]
			sum.Add(quantity)
			requests[name] = sum
		}
	}
	return &workv1alpha2.ResourceBindingSpec{
		Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: deployment.Namespace, Name: deployment.Name},
		Replicas:            *deployment.Spec.Replicas,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: requests},
		Placement:           &policy.Spec.Placement,
	}
}

func main() {
	var input struct{ Resources []json.RawMessage }
	check(json.NewDecoder(os.Stdin).Decode(&input))
	clusters := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	deployments := map[string]*appsv1.Deployment{}
	var policies []*policyv1alpha1.PropagationPolicy
	for _, document := range input.Resources {
		switch kind := decode[runtime.TypeMeta](document).Kind; kind {
		case "Cluster":
			check(clusters.Add(decode[clusterv1alpha1.Cluster](document)))
		case "Deployment":
			deployment := decode[appsv1.Deployment](document)
			deployments[deployment.Name] = deployment
		case "PropagationPolicy":
			policies = append(policies, decode[policyv1alpha1.PropagationPolicy](document))
		}
	}
	var bindings []*workv1alpha2.ResourceBindingSpec
	for _, policy := range policies {
		bindings = append(bindings, newBinding(deployments[policy.Spec.ResourceSelectors[0].Name], policy))
	}
	others := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	schedulerCache := schedulercache.NewCache(clusterlister.NewClusterLister(clusters), others, schedulercache.DefaultAssumptionTTL)
	scheduler, err := core.NewGenericScheduler(schedulerCache, plugins.NewInTreeRegistry())
	check(err)

	fastest, replicas := 0.0, int32(0)
	for round := 0; round < rounds; round++ {
		replicas = 0
		start := cpuSeconds()
		for _, binding := range bindings {
			result, err := scheduler.Schedule(context.Background(), binding, &workv1alpha2.ResourceBindingStatus{}, &core.ScheduleAlgorithmOption{})
			check(err)
			for _, target := range result.SuggestedClusters {
				replicas += target.Replicas
			}
		}
		fastest = max(fastest, float64(len(bindings))/(cpuSeconds()-start))
	}
	fmt.Printf("%.1f %d\n", fastest, replicas)
}
