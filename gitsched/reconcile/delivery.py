"""What delivery tools have to know about an output branch."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.git.wire import remote_url
from gitsched.model.errors import Permanent
from gitsched.reconcile.session import Session
from gitsched.reconcile.settings import Settings
from gitsched.render.consumers import Branch
from gitsched.render.record import public_url


class Delivery(NamedTuple):
    """`clusters` are the names of those that have a directory, sorted; `signed` says that gitsched.yaml has the commits signed."""

    branch: Branch
    clusters: tuple[str, ...]
    signed: bool


def survey(settings: Settings, url: str | None) -> Delivery:
    """Where the output is and which clusters it is for. Nothing is written.

    `url` is how delivery tools reach the repository, where that differs from the remote it is pushed to. Permanent when neither is one
    that they could use.
    """
    session = Session(settings._replace(observations="recorded"))
    observed = session.observe()
    output = observed.output
    known = url or output.remote or remote_url(output.repository, "origin")
    address = public_url(known)
    if address is None:
        what = f"{known!r} is no address" if url else "the output has no address"
        raise Permanent(f"{what} that a cluster could reach; name one with --url, https or ssh")
    step = session.plan(observed, settings.now)
    branch = Branch(address, output.branch, observed.prefix)
    return Delivery(branch, tuple(sorted(step.plan.facts)), step.config.output.signing is not None)
