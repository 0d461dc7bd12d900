"""Tokens, taken from where the operator keeps them. They go into a request and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gitsched.metrics.failures import Unreachable

_LONGEST = 1 << 14


def find_token(spec: Mapping[str, Any]) -> str:
    """The token of a provider: `tokenFrom` before `token`, "" without either. Raises Unreachable where it is not there."""
    place = spec.get("tokenFrom")
    if isinstance(place, dict) and place.get("env"):
        token = os.environ.get(str(place["env"]), "")
        lack = f"the environment variable {place['env']} is not set"
    elif isinstance(place, dict) and place.get("file"):
        token, lack = _read(str(place["file"])), f"there is no token in {place['file']}"
    else:
        return _check(str(spec.get("token") or ""))
    if not token.strip():
        raise Unreachable(lack)
    return _check(token.strip())


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_LONGEST).decode()
    except (OSError, ValueError):
        return ""


def _check(token: str) -> str:
    """A token that cannot be in a header would be told in the error of the client."""
    if not all("!" <= character <= "~" or character == " " for character in token):
        raise Unreachable("its token has characters that no header can have")
    return token
