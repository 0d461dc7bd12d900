"""activationPreference Lazy: an edit of the policy reaches a workload only when the workload itself is edited (spec/karmada.md §2).

A binding under such a policy notes the digest of the manifest that it was last written for. While the manifest has that digest, all
that the binding took from the policy then counts, not what the policy says now.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

from gitsched.apis.karmada.placement import Placement, parse_placement, placement_json
from gitsched.apis.karmada.policy import Policy
from gitsched.model.document import Body, Document, member, text_map

TEMPLATE_DIGEST = "gitsched.io/template-digest"
"""On a binding whose policy is Lazy: the digest of the manifest for which the policy was last applied."""
_COPIED = ("schedulerName", "propagateDeps", "failover", "conflictResolution", "preserveResourcesOnDeletion", "schedulePriority")
_MARKS = ("policy.karmada.io", "propagationpolicy.karmada.io", "clusterpropagationpolicy.karmada.io")
_SERVER_OWNED = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")


def is_lazy(policy: Policy) -> bool:
    """Whether edits of a policy wait for edits of its workloads."""
    return policy.spec.get("activationPreference") == "Lazy"


def digest_template(template: Document) -> str:
    """SHA-256, in hex, of what people write in a manifest: without status, server-made metadata, and Karmada's own marks."""
    body = {name: value for name, value in template.body.items() if name != "status"}
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in _SERVER_OWNED}
    for marks in ("labels", "annotations"):
        kept = {name: text for name, text in text_map(metadata.pop(marks, None)).items() if not _is_mark(name)}
        if kept:
            metadata[marks] = kept
    text = json.dumps({**body, "metadata": metadata}, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_waiting(policy: Policy, template: Document, binding: Body | None) -> bool:
    """Whether a policy counts for a workload only as the binding has it: it is Lazy, and the workload was not edited since."""
    if not is_lazy(policy) or not isinstance(member(binding or {}, "spec", "placement"), dict):
        return False
    noted = text_map(member(binding or {}, "metadata", "annotations")).get(TEMPLATE_DIGEST)
    return noted is None or noted == digest_template(template)


def activate(policy: Policy, template: Document, binding: Body | None) -> Policy:
    """The policy as it counts for a workload: itself, or what the binding has of it while a Lazy one waits for an edit.

    A workload without a binding is bound at once: nobody can know whether it or the policy came first. A binding without a digest was
    written before the policy turned Lazy, which is an edit of the policy like any other.
    """
    if binding is None or not is_waiting(policy, template, binding):
        return policy
    own: Body = binding["spec"]
    placement: Body = own["placement"]
    spec = {name: value for name, value in policy.spec.items() if name not in (*_COPIED, "placement", "suspension")}
    spec |= {name: own[name] for name in _COPIED if name in own}
    suspension = {name: value for name, value in (own.get("suspension") or {}).items() if name != "scheduling"}
    applied = placement_json(placement)
    more = {"placement": placement, **({"suspension": suspension} if suspension else {})}
    return policy._replace(spec={**spec, **more}, placement=_parse(applied), applied=applied)


@lru_cache(maxsize=1 << 10)
def _parse(applied: str) -> Placement:
    placement: Any = json.loads(applied)
    return parse_placement(placement)


def _is_mark(name: str) -> bool:
    """Whether a label or annotation is Karmada's own note of who claimed the workload."""
    return name.partition("/")[0] in _MARKS
