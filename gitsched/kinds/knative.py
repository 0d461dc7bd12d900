"""Kinds of Knative Serving and Eventing."""

from __future__ import annotations

from gitsched.kinds.kind import CONFIG_MAP, NAMESPACED, SERVICE, Kind, KindTable, Reference, condition, secrets

_SERVICE = ("serving.knative.dev/v1", "Service")
_BROKER = ("eventing.knative.dev/v1", "Broker")
_CHANNELS = (("messaging.knative.dev/v1", "Channel"), ("messaging.knative.dev/v1", "InMemoryChannel"))
_SINKS = (_SERVICE, SERVICE, _BROKER, *_CHANNELS)
_READY = condition("Ready")
_DEAD_LETTERS = Reference("spec.delivery.deadLetterSink.ref", _SINKS, kind_required=True)

KINDS: KindTable = {
    ("autoscaling.internal.knative.dev", "Metric"): Kind(NAMESPACED, "knative/serving/config/core/300-resources/metric.yaml"),
    ("autoscaling.internal.knative.dev", "PodAutoscaler"): Kind(
        NAMESPACED, "knative/serving/config/core/300-resources/podautoscaler.yaml"
    ),
    ("eventing.knative.dev", "Broker"): Kind(
        NAMESPACED,
        "knative/eventing/config/core/resources/broker.yaml",
        references=(Reference("spec.config", (CONFIG_MAP,), kind_required=True), _DEAD_LETTERS),
        health=_READY,
    ),
    ("eventing.knative.dev", "EventPolicy"): Kind(NAMESPACED, "knative/eventing/config/core/resources/eventpolicy.yaml"),
    ("eventing.knative.dev", "EventTransform"): Kind(NAMESPACED, "knative/eventing/config/core/resources/eventtransform.yaml"),
    ("eventing.knative.dev", "EventType"): Kind(NAMESPACED, "knative/eventing/config/core/resources/eventtype.yaml"),
    ("eventing.knative.dev", "RequestReply"): Kind(NAMESPACED, "knative/eventing/config/core/resources/requestreply.yaml"),
    ("eventing.knative.dev", "Trigger"): Kind(
        NAMESPACED,
        "knative/eventing/config/core/resources/trigger.yaml",
        references=(
            Reference("spec.broker", (_BROKER,)),
            Reference("spec.subscriber.ref", _SINKS, kind_required=True),
            _DEAD_LETTERS,
        ),
        health=_READY,
    ),
    ("flows.knative.dev", "Parallel"): Kind(
        NAMESPACED,
        "knative/eventing/config/core/resources/parallel.yaml",
        references=(
            Reference("spec.branches[].subscriber.ref", _SINKS, kind_required=True),
            Reference("spec.branches[].filter.ref", _SINKS, kind_required=True),
            Reference("spec.reply.ref", _SINKS, kind_required=True),
        ),
        health=_READY,
    ),
    ("flows.knative.dev", "Sequence"): Kind(
        NAMESPACED,
        "knative/eventing/config/core/resources/sequence.yaml",
        references=(
            Reference("spec.steps[].ref", _SINKS, kind_required=True),
            Reference("spec.reply.ref", _SINKS, kind_required=True),
        ),
        health=_READY,
    ),
    ("messaging.knative.dev", "Channel"): Kind(
        NAMESPACED, "knative/eventing/config/core/resources/channel.yaml", references=(_DEAD_LETTERS,), health=_READY
    ),
    ("messaging.knative.dev", "InMemoryChannel"): Kind(
        NAMESPACED,
        "knative/eventing/config/channels/in-memory-channel/resources/in-memory-channel.yaml",
        references=(_DEAD_LETTERS,),
        health=_READY,
    ),
    ("messaging.knative.dev", "Subscription"): Kind(
        NAMESPACED,
        "knative/eventing/config/core/resources/subscription.yaml",
        references=(
            Reference("spec.channel", _CHANNELS, kind_required=True),
            Reference("spec.subscriber.ref", _SINKS, kind_required=True),
            Reference("spec.reply.ref", _SINKS, kind_required=True),
            _DEAD_LETTERS,
        ),
        health=_READY,
    ),
    ("serving.knative.dev", "Configuration"): Kind(
        NAMESPACED, "knative/serving/config/core/300-resources/configuration.yaml", pod_templates=("spec.template",), health=_READY
    ),
    ("serving.knative.dev", "DomainMapping"): Kind(
        NAMESPACED,
        "knative/serving/config/core/300-resources/domain-mapping.yaml",
        references=(Reference("spec.ref", (_SERVICE,), kind_required=True), *secrets("spec.tls.secretName")),
        health=_READY,
    ),
    ("serving.knative.dev", "Revision"): Kind(
        NAMESPACED, "knative/serving/config/core/300-resources/revision.yaml", pod_specs=("spec",), health=_READY
    ),
    ("serving.knative.dev", "Route"): Kind(NAMESPACED, "knative/serving/config/core/300-resources/route.yaml", health=_READY),
    ("serving.knative.dev", "Service"): Kind(
        NAMESPACED, "knative/serving/config/core/300-resources/service.yaml", pod_templates=("spec.template",), health=_READY
    ),
    ("sinks.knative.dev", "IntegrationSink"): Kind(NAMESPACED, "knative/eventing/config/core/resources/integrationsink.yaml"),
    ("sinks.knative.dev", "JobSink"): Kind(NAMESPACED, "knative/eventing/config/core/resources/jobsink.yaml"),
}
