"""Verify webhook signatures. GitHub, Gitea and Forgejo sign with `X-Hub-Signature-256`, Bitbucket with `X-Hub-Signature`, others
may with `X-Signature`; GitLab sends a token or follows the Standard Webhooks specification. The body is only hashed.

GitHub, Gitea and Forgejo sign with `X-Hub-Signature-256`, Bitbucket with `X-Hub-Signature`, anybody else may with `X-Signature`; each
is `sha256=` and the hexadecimal HMAC of the body. GitLab sends the secret itself in `X-Gitlab-Token`, or signs as the Standard Webhooks
specification says.
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
"""Seconds by which a signed time may be off before the request counts as replayed."""
_MAX_SIGNATURES = 8
"""Signatures looked at in one header."""


class SignatureCheck(Protocol):
    """Fed with the body as it arrives; nothing of it is kept."""

    def feed(self, data: bytes) -> None:
        """The next bytes of the body."""

    def is_valid(self) -> bool:
        """Whether the whole came from who knows a secret, found out in the same time whatever is wrong."""


def open_signature_check(headers: Iterable[tuple[bytes, bytes]], secrets: Sequence[str], now: float) -> SignatureCheck | None:
    """The check that a request's headers ask for, names in lower case; None where they bear no signature, or an ambiguous one.

    `now` is in seconds since 1970. A request that is signed and bears a token is judged by its signature.
    """
    given: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in given:
            return None
        if name in _SIGNATURE_HEADERS:
            given[name] = value
    keys = [secret.encode() for secret in secrets]
    if b"webhook-signature" in given:
        return _open_standard_webhook(given, keys, now)
    for name in _HMAC_HEADERS:
        if name in given:
            match = _DIGEST.fullmatch(given[name])
            return _HmacCheck(keys, b"", [bytes.fromhex(match[1].decode())]) if match else None
    return _TokenCheck(keys, given[_TOKEN_HEADER]) if _TOKEN_HEADER in given else None


def _open_standard_webhook(given: dict[bytes, bytes], keys: Sequence[bytes], now: float) -> SignatureCheck | None:
    identity, stamp = given.get(b"webhook-id", b""), given.get(b"webhook-timestamp", b"")
    if not identity or not _TIMESTAMP.fullmatch(stamp) or abs(now - int(stamp)) > _TIMESTAMP_TOLERANCE:
        return None
    found = [text.partition(b",")[2] for text in given[b"webhook-signature"].split(b" ") if text.startswith(b"v1,")]
    digests = [digest for digest in map(_decode_base64, found[:_MAX_SIGNATURES]) if digest]
    return _HmacCheck([_decode_key(key) for key in keys], b"%b.%b." % (identity, stamp), digests)


def _decode_key(key: bytes) -> bytes:
    """A signing secret is written `whsec_` and base64; one that is not counts as it stands."""
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
        # All pairs are compared, so that the time does not tell which one fits.
        return any([hmac.compare_digest(mac.digest(), digest) for mac in self._macs for digest in self._digests])  # noqa: C419


class _TokenCheck:
    def __init__(self, keys: Sequence[bytes], token: bytes) -> None:
        self._keys, self._token = keys, token

    def feed(self, data: bytes) -> None:
        """The token vouches for the sender, not for the body, which nobody reads anyway."""

    def is_valid(self) -> bool:
        # Digests have one length; a comparison of the secrets themselves would tell theirs.
        given = hashlib.sha256(self._token).digest()
        return any([hmac.compare_digest(hashlib.sha256(key).digest(), given) for key in self._keys])  # noqa: C419
