"""Parse the values of the options of a scenario: lost, drained and added clusters, scaled workloads."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from gitsched.cli.commands.schedule import read_documents
from gitsched.cli.workload_names import is_kind, parse_clusters, parse_kind
from gitsched.model.labels import parse_selector
from gitsched.model.simulation import FAILURE_DOMAIN_KINDS, FailureDomain
from gitsched.simulate.scenario import Scaling

if TYPE_CHECKING:
    from gitsched.model.document import Body
MAX_FACTOR = 1000
"""The largest factor of --scale."""


def parse_scope(text: str) -> FailureDomain:
    """Parse NAME (a cluster) or KIND/NAME."""
    by, slash, name = text.partition("/")
    if not slash:
        by, name = "cluster", by
    if by not in FAILURE_DOMAIN_KINDS or not name:
        raise click.UsageError(f"{text!r} is not a cluster or one of {', '.join(f'{by}/NAME' for by in FAILURE_DOMAIN_KINDS)}")
    return FailureDomain(by, name)


def parse_copy(text: str) -> tuple[str, str]:
    """Parse CLUSTER=NEW."""
    name, equals, new = text.partition("=")
    (name,) = parse_clusters((name,))
    if not (name and equals and new):
        raise click.UsageError(f"{text!r} is not of the form CLUSTER=NEW")
    return name, new


def parse_scaling(text: str) -> Scaling:
    """Parse [KIND/][NAMESPACE/]NAME=FACTOR with * and ?, or KEY=VALUE[,...]=FACTOR for labels."""
    pattern, _, number = text.rpartition("=")
    factor = _parse_factor(number)
    if not pattern or factor is None:
        raise click.UsageError(f"{text!r} is not of the form WORKLOADS=FACTOR, such as shop/cart=2 or tier=front=1.5")
    if "=" in pattern:
        labels = dict(pair.partition("=")[::2] for pair in pattern.split(","))
        selector = parse_selector({"matchLabels": labels})
        if selector is None:
            raise click.UsageError(f"{pattern!r} is not a valid list of labels")
        return Scaling(pattern, number, factor, labels=selector)
    parts = pattern.split("/")
    if len(parts) > 3 or not all(parts):
        raise click.UsageError(f"{pattern!r} is not [KIND/][NAMESPACE/]NAME")
    if len(parts) == 2 and is_kind(parts[0]):
        parts.insert(1, "*")
    kind, namespace, name = (*["*"] * (3 - len(parts)), *parts)
    return Scaling(pattern, number, factor, parse_kind(kind) if kind != "*" else kind, namespace, name)


def _parse_factor(text: str) -> Fraction | None:
    """Parse a number from 0 to MAX_FACTOR; None with a sign, an exponent or more than nine characters."""
    integer, _, fraction = text.partition(".")
    if not (integer + fraction).isdecimal() or not text.isascii() or len(text) > 9:
        return None
    factor = Fraction(text if integer else f"0{text}")
    return factor if factor <= MAX_FACTOR else None


def read_clusters(name: str) -> list[Body]:
    """Read the documents of a file; an invalid document is a usage error."""
    bodies, findings = read_documents([name])
    errors = [str(finding) for finding in findings if finding.severity == "error"]
    if errors:
        raise click.UsageError("\n".join(errors))
    return bodies
