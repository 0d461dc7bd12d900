"""Why a provider gave no number. Messages never hold an address, a token or an answer."""

from __future__ import annotations


class Unreachable(Exception):
    """The provider could not be asked, or gave no answer that is one."""


class Invalid(Exception):
    """The provider answered, but with no number for this metric."""
