// Measures how long Open Cluster Management's placement controller takes to schedule a Placement. `python -m benchmarks.ocm --upstream` builds it
// in a checkout of ocm.
//
// It reads an input as JSON: {"now": TIME, "resources": [ManagedCluster, AddOnPlacementScore, Placement, ...], "previous": [PlacementDecision, ...]},
// in which all clusters are available to all Placements. It prints the CPU milliseconds of the fastest round for a Placement, and the decisions of a
// round. Reading the input does not count.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	clusterlisterv1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1"
	clusterlisterv1alpha1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1alpha1"
	clusterlisterv1beta1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"open-cluster-management.io/ocm/pkg/placement/controllers/scheduling"
	"open-cluster-management.io/ocm/pkg/placement/plugins/addon"
	"open-cluster-management.io/ocm/pkg/placement/plugins/tainttoleration"
)

const rounds = 3

// newIndexer returns a store as the informers of the controller make it.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func main() {
	var input struct {
		Now                 time.Time
		Resources, Previous []json.RawMessage
	}
	check(json.NewDecoder(os.Stdin).Decode(&input))
	clusters, scores, decisions := newIndexer(), newIndexer(), newIndexer()
	var available []*clusterv1.ManagedCluster
	var placements []*clusterv1beta1.Placement
	for _, document := range append(input.Resources, input.Previous...) {
		switch kind := decode[runtime.TypeMeta](document).Kind; kind {
		case "ManagedCluster":
			cluster := decode[clusterv1.ManagedCluster](document)
			available = append(available, cluster)
			check(clusters.Add(cluster))
		case "AddOnPlacementScore":
			check(scores.Add(decode[clusterv1alpha1.AddOnPlacementScore](document)))
		case "PlacementDecision":
			check(decisions.Add(decode[clusterv1beta1.PlacementDecision](document)))
		case "Placement":
			placements = append(placements, decode[clusterv1beta1.Placement](document))
		}
	}
	now := clock.Clock(clocktesting.NewFakeClock(input.Now))
	addon.AddOnClock, tainttoleration.TolerationClock = now, now
	scheduler := scheduling.NewPluginScheduler(scheduling.NewSchedulerHandler(
		nil,
		clusterlisterv1beta1.NewPlacementDecisionLister(decisions),
		clusterlisterv1alpha1.NewAddOnPlacementScoreLister(scores),
		clusterlisterv1.NewManagedClusterLister(clusters),
		events.NewFakeRecorder(1),
		nil,
	))

	fastest, decided := 0.0, 0
	for round := 0; round < rounds; round++ {
		decided = 0
		start := cpuSeconds()
		for _, placement := range placements {
			// The scheduler sorts the clusters in place.
			result, status := scheduler.Schedule(context.Background(), placement, append([]*clusterv1.ManagedCluster(nil), available...))
			check(status.AsError())
			decided += len(result.Decisions())
		}
		if spent := (cpuSeconds() - start) * 1000 / float64(len(placements)); round == 0 || spent < fastest {
			fastest = spent
		}
	}
	fmt.Printf("%.3f %d\n", fastest, decided)
}
