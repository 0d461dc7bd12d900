"""The files that `gitsched init --api knative` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

_SETTINGS: Final = """\
  knative:
    capacity: 20 # consumers per pod
    cluster: events # where the StatefulSet runs
    statefulSet: knative-eventing/kafkasource-mt-adapter
    autoscaler:
      refreshPeriodSeconds: 60 # pods go this long after their vreplicas; longer than `gitsched apply knative` takes
"""
_EXAMPLE: Final = """\
# The consumers of an event source are spread over the pods of a StatefulSet.
apiVersion: sources.knative.dev/v1beta1
kind: KafkaSource
metadata:
  name: example
  namespace: default
spec:
  consumers: 4
"""

STARTER: Final = StarterFiles(
    _SETTINGS,
    {"sources/example.yaml": _EXAMPLE},
    "the StatefulSet, its Pods and their Nodes, as `kubectl get -o yaml` prints them",
    "docs/knative.md",
)
