"""Drawing lots that everybody can repeat: who wins depends on the request and the candidates' names, and on nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


def draw(identity: str, names: Iterable[str]) -> str:
    """The winner among candidates that are equally good: the one with the least SHA-256 of `identity`, a line feed and its name.

    Requests with different identities spread evenly, the same request always draws the same, and a candidate that comes or goes
    changes only the draws that it wins or won. Names must not be empty.
    """
    seed = sha256(identity.encode("utf-8", "surrogatepass") + b"\n")
    best, winner = b"", ""
    for name in names:
        ticket = seed.copy()
        ticket.update(name.encode("utf-8", "surrogatepass"))
        number = ticket.digest()
        if not winner or (number, name) < (best, winner):
            best, winner = number, name
    return winner
