"""Verify webhook signatures (HMAC-SHA256) and tokens: GitHub, GitLab, and Standard Webhooks.

GitHub, Gitea and Forgejo sign with `X-Hub-Signature-256`, Bitbucket with `X-Hub-Signature`, other senders with `X-Signature`; each value
is `sha256=` and the HMAC of the body in hex. GitLab sends the secret in `X-Gitlab-Token` or follows the Standard Webhooks specification.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

_HMAC_HEADERS = (b"x-hub-signature-256", b"x-signature", b"x-hub-signature")
_STANDARD_HEADERS = (b"webhook-signature", b"webhook-id", b"webhook-timestamp")
_TOKEN_HEADER = b"x-gitlab-token"
_SIGNATURE_HEADERS = frozenset((*_HMAC_HEADERS, *_STANDARD_HEADERS, _TOKEN_HEADER))
_DIGEST = re.compile(rb"sha256=([0-9a-fA-F]{64})")
_TIMESTAMP = re.compile(rb"[0-9]{1,12}")
_TIMESTAMP_TOLERANCE = 300.0
"""Maximum difference in seconds between a signed timestamp and now; a larger one counts as a replay."""
_MAX_SIGNATURES = 8
"""Maximum number of signatures that are checked in one header."""


class SignatureCheck(Protocol):
    """Receives the body as it arrives, without storing it."""

    def feed(self, data: bytes) -> None:
        """Receive the next bytes of the body."""

    def is_valid(self) -> bool:
        """Return whether a known secret signed the complete body, in constant time."""


def open_signature_check(headers: Iterable[tuple[bytes, bytes]], secrets: Sequence[str], now: float) -> SignatureCheck | None:
    """Return the check for a request's headers, whose names are in lower case; None without a signature, or with an ambiguous
    one.

    `now` is in seconds since 1970. The signature of a request that also has a token decides.
    """
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in values:
            return None
        if name in _SIGNATURE_HEADERS:
            values[name] = value
    keys = [secret.encode() for secret in secrets]
    if b"webhook-signature" in values:
        return _open_standard_webhook(values, keys, now)
    for name in _HMAC_HEADERS:
        if name in values:
            match = _DIGEST.fullmatch(values[name])
            return _HmacCheck(keys, b"", [bytes.fromhex(match[1].decode())]) if match else None
    return _TokenCheck(keys, values[_TOKEN_HEADER]) if _TOKEN_HEADER in values else None


def _open_standard_webhook(values: dict[bytes, bytes], keys: Sequence[bytes], now: float) -> SignatureCheck | None:
    identity, timestamp = values.get(b"webhook-id", b""), values.get(b"webhook-timestamp", b"")
    if not identity or not _TIMESTAMP.fullmatch(timestamp) or abs(now - int(timestamp)) > _TIMESTAMP_TOLERANCE:
        return None
    found = [text.partition(b",")[2] for text in values[b"webhook-signature"].split(b" ") if text.startswith(b"v1,")]
    digests = [digest for digest in map(_decode_base64, found[:_MAX_SIGNATURES]) if digest]
    return _HmacCheck([_decode_key(key) for key in keys], b"%b.%b." % (identity, timestamp), digests)


def _decode_key(key: bytes) -> bytes:
    """Decode a signing secret written as `whsec_` and base64; any other secret is used as it is."""
    return (_decode_base64(key.removeprefix(b"whsec_")) if key.startswith(b"whsec_") else b"") or key


def _decode_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


class _HmacCheck:
    def __init__(self, keys: Sequence[bytes], prefix: bytes, digests: Sequence[bytes]) -> None:
        self._macs = [hmac.new(key, prefix, hashlib.sha256) for key in keys]
        self._digests = digests

    def feed(self, data: bytes) -> None:
        for mac in self._macs:
            mac.update(data)

    def is_valid(self) -> bool:
        # All pairs are compared, so that the duration does not reveal which one matches.
        return any([hmac.compare_digest(mac.digest(), digest) for mac in self._macs for digest in self._digests])  # noqa: C419


class _TokenCheck:
    def __init__(self, keys: Sequence[bytes], token: bytes) -> None:
        self._keys, self._token = keys, token

    def feed(self, data: bytes) -> None:
        """Ignore the body: the token authenticates the sender only."""

    def is_valid(self) -> bool:
        # Digests have equal lengths; comparing the secrets would reveal their length.
        values = hashlib.sha256(self._token).digest()
        return any([hmac.compare_digest(hashlib.sha256(key).digest(), values) for key in self._keys])  # noqa: C419
