"""Kinds of Spark."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Component, Kind, KindTable, Test

KINDS: KindTable = {
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): Kind(
        NAMESPACED, "kubeflow/spark-operator/charts/spark-operator-chart/crds/sparkoperator.k8s.io_scheduledsparkapplications.yaml"
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): Kind(
        NAMESPACED,
        "kubeflow/spark-operator/charts/spark-operator-chart/crds/sparkoperator.k8s.io_sparkapplications.yaml",
        interpreter="sparkoperator.k8s.io/v1beta2/SparkApplication",
        components=(Component("spec.driver", name="driver"), Component("spec.executor", "instances", name="executor")),
        health=((Test("status.applicationState.state", "not in", (None, "FAILED")),),),
    ),
    ("sparkoperator.k8s.io", "SparkConnect"): Kind(
        NAMESPACED, "kubeflow/spark-operator/charts/spark-operator-chart/crds/sparkoperator.k8s.io_sparkconnects.yaml"
    ),
}
