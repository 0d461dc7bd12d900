"""Generate workloads in the style of hand-written manifests: comments, block style, about a kilobyte for a Deployment."""

from __future__ import annotations

from typing import NamedTuple


class Workload(NamedTuple):
    """`lane` is the number of the policy that selects the workload by label; `salt` makes contents differ."""

    name: str
    namespace: str
    lane: int
    replicas: int
    salt: int


def deployment(workload: Workload) -> str:
    """Return an apps/v1 Deployment with one container, probes and resources."""
    name = workload.name
    return f"""\
# {name} of {workload.namespace}; owned by the team of the same name.
apiVersion: apps/v1
kind: Deployment
{_metadata(workload)}
  annotations:
    contact: "#{workload.namespace}"
    runbook: https://runbooks.example.com/{workload.namespace}/{name}
spec:
  replicas: {workload.replicas}
  selector:
    matchLabels:
      app: {name}
  template:
    metadata:
      labels:
        app: {name}
    spec:
      containers:
        - name: app
          image: registry.example.com/{workload.namespace}/app:1.{workload.salt}.0
          args: ["--listen=:8080", "--log-format=json"]
          env:
            - name: SHARD
              value: "{workload.salt}"
            - name: UPSTREAM
              value: http://upstream.{workload.namespace}.svc:8080
          ports:
            - name: http
              containerPort: 8080
          readinessProbe: # the service takes traffic only when it answers
            httpGet:
              path: /ready
              port: http
            periodSeconds: 5
          resources:
            requests:
              cpu: {50 + workload.salt % 10 * 50}m
              memory: {128 + workload.salt % 8 * 64}Mi
            limits:
              memory: {256 + workload.salt % 8 * 128}Mi
"""


def config_map(workload: Workload) -> str:
    """Return a ConfigMap with a few scalars and a file."""
    return f"""\
apiVersion: v1
kind: ConfigMap
{_metadata(workload)}
data:
  log-level: info
  cache-size: "{workload.salt}"
  feature-{workload.salt % 7}: "on"
  application.properties: |
    server.port=8080
    server.shutdown=graceful
    client.timeout={workload.salt}ms
    client.retries={workload.salt % 5}
"""


def service(workload: Workload) -> str:
    """Return the Service of a Deployment."""
    return f"""\
apiVersion: v1
kind: Service
{_metadata(workload)}
spec:
  selector:
    app: {workload.name}
  ports:
    - name: http
      port: 80
      targetPort: http
"""


def _metadata(workload: Workload) -> str:
    return f"""\
metadata:
  name: {workload.name}
  namespace: {workload.namespace}
  labels:
    app: {workload.name}
    lane: lane-{workload.lane:02}"""
