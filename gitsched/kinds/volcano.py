"""Kinds of Volcano."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Component, Kind, KindTable, Test

KINDS: KindTable = {
    ("batch.volcano.sh", "CronJob"): Kind(NAMESPACED, "volcano-sh/volcano/config/crd/volcano/bases/batch.volcano.sh_cronjobs.yaml"),
    ("batch.volcano.sh", "Job"): Kind(
        NAMESPACED,
        "volcano-sh/volcano/config/crd/volcano/bases/batch.volcano.sh_jobs.yaml",
        interpreter="batch.volcano.sh/v1alpha1/Job",
        components=(Component("spec.tasks[]", "minAvailable", 1, "template", name="task-{}", name_field="name"),),
        health=(
            (
                Test(
                    "status.state.phase",
                    values=(
                        "Running",
                        "Completed",
                        "Pending",
                        "Aborting",
                        "Aborted",
                        "Restarting",
                        "Completing",
                        "Terminating",
                        "Terminated",
                    ),
                ),
            ),
        ),
    ),
    ("bus.volcano.sh", "Command"): Kind(NAMESPACED, "volcano-sh/volcano/config/crd/volcano/bases/bus.volcano.sh_commands.yaml"),
    ("config.volcano.sh", "ColocationConfiguration"): Kind(
        NAMESPACED, "volcano-sh/volcano/config/crd/volcano/bases/config.volcano.sh_colocationconfigurations.yaml"
    ),
    ("flow.volcano.sh", "JobFlow"): Kind(NAMESPACED, "volcano-sh/volcano/config/crd/jobflow/bases/flow.volcano.sh_jobflows.yaml"),
    ("flow.volcano.sh", "JobTemplate"): Kind(
        NAMESPACED, "volcano-sh/volcano/config/crd/jobflow/bases/flow.volcano.sh_jobtemplates.yaml"
    ),
    ("nodeinfo.volcano.sh", "Numatopology"): Kind(
        CLUSTER, "volcano-sh/volcano/config/crd/volcano/bases/nodeinfo.volcano.sh_numatopologies.yaml"
    ),
    ("scheduling.volcano.sh", "PodGroup"): Kind(
        NAMESPACED, "volcano-sh/volcano/config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml"
    ),
    ("scheduling.volcano.sh", "Queue"): Kind(
        CLUSTER, "volcano-sh/volcano/config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml"
    ),
    ("shard.volcano.sh", "NodeShard"): Kind(
        CLUSTER, "volcano-sh/volcano/config/crd/volcano/bases/shard.volcano.sh_nodeshards.yaml"
    ),
    ("topology.volcano.sh", "HyperNode"): Kind(
        CLUSTER, "volcano-sh/volcano/config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml"
    ),
}
