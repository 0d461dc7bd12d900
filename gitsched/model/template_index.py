"""What selectors of policies read of every template of a plan, so that the template of no unchanged file has to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key


class TemplateEntry(NamedTuple):
    """What a plan keeps of one template.

    `annotations` are those in the domains of policy APIs, such as karmada.io and its subdomains. `policy` is the one of its outcome in the
    last plan, "" if none selects it. `path` is the file that has it.
    """

    api_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    policy: str
    path: str


TemplateIndex = Mapping[Key, TemplateEntry]
"""The entries of all templates of a plan by key, also of those that no policy selects, in no particular order."""
