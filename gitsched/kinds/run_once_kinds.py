"""Kinds of workloads that run to completion, or whose pods nothing makes anew: a second copy would do the same work again."""

from __future__ import annotations

from typing import Final

RUN_ONCE_KINDS: Final = frozenset(
    (
        ("", "Pod"),
        ("argoproj.io", "CronWorkflow"),
        ("argoproj.io", "Workflow"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("ray.io", "RayJob"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("tekton.dev", "PipelineRun"),
        ("tekton.dev", "TaskRun"),
    )
)
"""Group and kind of workloads that would run twice: their copies are removed at once."""
