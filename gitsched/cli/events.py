"""What people type as events: something lost, a cluster like another one, workloads that grow."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from gitsched.model.simulation import DIMENSIONS, Scope

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.plan.scenario import Scaling

SWEEPS = {"clusters": "cluster", "nodes": "node", "zones": "zone", "regions": "region", "providers": "provider"}
"""What can be lost one after the other, as people say it."""
LARGEST = 1000
"""The largest factor."""


def read_scope(text: str) -> Scope:
    """NAME, or DIMENSION/NAME; a plain name is a cluster's."""
    by, slash, name = text.partition("/")
    if not slash:
        by, name = "cluster", by
    if by not in DIMENSIONS or not name:
        raise click.UsageError(f"{text!r} is neither a cluster nor one of {', '.join(f'{by}/NAME' for by in DIMENSIONS)}")
    return Scope(by, name)


def read_copy(text: str) -> tuple[str, str]:
    """CLUSTER=NEW."""
    name, equals, new = text.partition("=")
    if not (name and equals and new):
        raise click.UsageError(f"{text!r} is not of the form CLUSTER=NEW")
    return name, new


def read_scaling(text: str) -> Scaling:
    """[[KIND/]NAMESPACE/]NAME=FACTOR with * and ?, or KEY=VALUE[,...]=FACTOR for labels."""
    from gitsched.cli.explain import read_kind
    from gitsched.model.labels import parse_selector
    from gitsched.plan.scenario import Scaling

    what, _, number = text.rpartition("=")
    factor = _read_factor(number)
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
    return Scaling(what, number, factor, read_kind(kind) if kind != "*" else kind, namespace, name)


def _read_factor(text: str) -> Fraction | None:
    """A number from 0 to LARGEST; a sign, an exponent or more than nine digits is none."""
    whole, _, part = text.partition(".")
    if not (whole + part).isdecimal() or not text.isascii() or len(text) > 9:
        return None
    factor = Fraction(text if whole else f"0{text}")
    return factor if factor <= LARGEST else None


def read_clusters(name: str) -> list[Body]:
    """The documents of a file."""
    from gitsched.cli.schedule import read_documents

    bodies, findings = read_documents([name])
    wrong = [str(finding) for finding in findings if finding.severity == "error"]
    if wrong:
        raise click.UsageError("\n".join(wrong))
    return bodies
