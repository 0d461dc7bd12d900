"""Validation of FederatedResourceQuotas, as Karmada's admission webhook does it.

Source: karmada/pkg/webhook/federatedresourcequota/validating.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.karmada.validation.cluster import make_error
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import Issue
from gitsched.model.quantity import MAX_AMOUNT, NANO, Quantity, parse_quantity


def validate_quota(body: Body) -> Iterator[Issue]:
    """Validate a FederatedResourceQuota: its amounts, and that no more is assigned to clusters than it has overall. Nothing waits for a
    quota that was never valid, so each error says that it does not limit."""
    for issue in _find_errors(body):
        yield issue._replace(message=f"{issue.message}; a quota that was never valid limits nothing until it is corrected")


def _find_errors(body: Body) -> Iterator[Issue]:
    overall = as_object(get_field(body, "spec", "overall"))
    yield from _validate_amounts(overall, "spec", "overall")
    assigned: dict[str, int] = {}
    clusters: set[str] = set()
    for number, one in enumerate(list_objects(get_field(body, "spec", "staticAssignments"))):
        at = ("spec", "staticAssignments", number)
        name, hard = str(one.get("clusterName") or ""), as_object(one.get("hard"))
        if not name:
            yield make_error("karmada-quota-cluster", "clusterName must not be empty", *at)
        elif name in clusters:
            yield make_error("karmada-quota-cluster", f"cluster {name} has more than one assignment", *at, "clusterName")
        clusters.add(name)
        yield from _validate_amounts(hard, *at, "hard")
        for resource, text in hard.items():
            amount = parse_quantity(text)
            assigned[resource] = assigned.get(resource, 0) + (amount.nano if amount is not None else 0)
    for resource, total in assigned.items():
        limit = parse_quantity(overall.get(resource))
        if limit is not None and total > limit.nano:
            message = f"overall has {limit} {resource}, and {Quantity(total, limit.binary)} are assigned to clusters"
            yield make_error("karmada-quota-contradiction", message, "spec", "overall", resource)


def _validate_amounts(amounts: Body, *at: str | int) -> Iterator[Issue]:
    for resource, text in amounts.items():
        amount = parse_quantity(text)
        if amount is None:
            hint = "; write k for 1000, or Ki for 1024" if str(text).endswith("K") else ""
            yield make_error("karmada-quota-amount", f"{text!r} is not a quantity{hint}", *at, resource)
        elif amount.nano < 0:
            yield make_error("karmada-quota-amount", "the amount must be 0 or more", *at, resource)
        elif amount.nano > MAX_AMOUNT * NANO:
            yield make_error("karmada-quota-amount", f"the amount exceeds {MAX_AMOUNT}, which is the largest one", *at, resource)
