"""Parse scenario options: what is lost, drained or added, and which workloads are scaled."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from gitsched.model.simulation import FAILURE_DOMAIN_KINDS, FailureDomain

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.simulate.scenario import Scaling

FAILURE_DOMAINS = {"clusters": "cluster", "nodes": "node", "zones": "zone", "regions": "region", "providers": "provider"}
"""What can be lost one after the other, as people say it."""
MAX_FACTOR = 1000
"""The largest factor."""


def parse_scope(text: str) -> FailureDomain:
    """NAME, or DIMENSION/NAME; a plain name is a cluster's."""
    by, slash, name = text.partition("/")
    if not slash:
        by, name = "cluster", by
    if by not in FAILURE_DOMAIN_KINDS or not name:
        raise click.UsageError(f"{text!r} is neither a cluster nor one of {', '.join(f'{by}/NAME' for by in FAILURE_DOMAIN_KINDS)}")
    return FailureDomain(by, name)


def parse_copy(text: str) -> tuple[str, str]:
    """CLUSTER=NEW."""
    name, equals, new = text.partition("=")
    if not (name and equals and new):
        raise click.UsageError(f"{text!r} is not of the form CLUSTER=NEW")
    return name, new


def parse_scaling(text: str) -> Scaling:
    """[[KIND/]NAMESPACE/]NAME=FACTOR with * and ?, or KEY=VALUE[,...]=FACTOR for labels."""
    from gitsched.cli.explain import parse_kind
    from gitsched.model.labels import parse_selector
    from gitsched.simulate.scenario import Scaling

    what, _, number = text.rpartition("=")
    factor = _parse_factor(number)
    if not what or factor is None:
        raise click.UsageError(f"{text!r} is not of the form WORKLOADS=FACTOR, such as shop/cart=2 or tier=front=1.5")
    if "=" in what:
        labels = dict(pair.partition("=")[::2] for pair in what.split(","))
        selector = parse_selector({"matchLabels": labels})
        if selector is None:
            raise click.UsageError(f"{what!r} are no labels")
        return Scaling(what, number, factor, labels=selector)
    parts = what.split("/")
    if len(parts) > 3 or not all(parts):
        raise click.UsageError(f"{what!r} is not [[KIND/]NAMESPACE/]NAME")
    kind, namespace, name = (*["*"] * (3 - len(parts)), *parts)
    return Scaling(what, number, factor, parse_kind(kind) if kind != "*" else kind, namespace, name)


def _parse_factor(text: str) -> Fraction | None:
    """A number from 0 to LARGEST; a sign, an exponent or more than nine digits is none."""
    whole, _, part = text.partition(".")
    if not (whole + part).isdecimal() or not text.isascii() or len(text) > 9:
        return None
    factor = Fraction(text if whole else f"0{text}")
    return factor if factor <= MAX_FACTOR else None


def read_clusters(name: str) -> list[Body]:
    """The documents of a file."""
    from gitsched.cli.schedule import read_documents

    bodies, findings = read_documents([name])
    wrong = [str(finding) for finding in findings if finding.severity == "error"]
    if wrong:
        raise click.UsageError("\n".join(wrong))
    return bodies
