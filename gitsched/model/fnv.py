"""FNV-1a, the hash that Karmada uses for binding names and for breaking ties."""

from __future__ import annotations


def fnv1a_32(text: str) -> int:
    """Return the 32-bit FNV-1a hash of a text's UTF-8 bytes."""
    digest = 2166136261
    for byte in text.encode():
        digest = (digest ^ byte) * 16777619 & 0xFFFFFFFF
    return digest
