"""The name of a container image, taken apart and changed as Karmada's image overrider changes it."""

from __future__ import annotations

import re
from typing import NamedTuple

from gitsched.apis.karmada.patching import Inapplicable

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = r"\w[\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE = re.compile(rf"((?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::({_TAG}))?(?:@({_DIGEST}))?", re.ASCII)
_ONLY_TAG, _ONLY_DIGEST = re.compile(_TAG, re.ASCII), re.compile(_DIGEST, re.ASCII)
_USABLE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}", re.ASCII)
_LONGEST, _LONGEST_PATH = 4096, 255


class Image(NamedTuple):
    """[registry/]repository[:tag], or with @digest in place of the tag; "" for what is not there."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        return f"{name}:{self.tag}" if self.tag else f"{name}@{self.digest}" if self.digest else name


def parse_image(text: str) -> Image:
    """Read the name of an image. The first part is a registry if it has a dot or a port, or is localhost.

    A digest beside a tag is dropped, as upstream drops it. Raises Inapplicable for what is no image name.
    """
    match = _IMAGE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or (match[3] and not _USABLE_DIGEST.fullmatch(match[3])):
        raise Inapplicable("the image has no valid name")
    first, slash, rest = match[1].partition("/")
    known = slash and ("." in first or ":" in first or first == "localhost")
    registry, repository = (first, rest) if known else ("", match[1])
    if len(repository) > _LONGEST_PATH:
        raise Inapplicable(f"the image's repository is longer than {_LONGEST_PATH} characters")
    return Image(registry, repository, match[2] or "", "" if match[2] else match[3] or "")


def is_tag(text: str) -> bool:
    """Whether a text can be set as the tag of an image, or as its digest in place of a tag."""
    return bool(_ONLY_TAG.fullmatch(text) or _ONLY_DIGEST.fullmatch(text))


def change_image(text: str, component: str, operator: str, value: str) -> str:
    """The image name with its Registry, Repository or Tag changed. `add` appends; a value that could be neither tag nor digest
    leaves the tag as it is."""
    image = parse_image(text)
    if component == "Registry":
        return str(image._replace(registry=_change(image.registry, operator, value)))
    if component == "Repository":
        return str(image._replace(repository=_change(image.repository, operator, value)))
    changed = _change(image.tag or image.digest, operator, value)
    if operator == "remove" or _ONLY_TAG.fullmatch(changed):
        return str(image._replace(tag=changed, digest=""))
    return str(image._replace(tag="", digest=changed)) if _ONLY_DIGEST.fullmatch(changed) else str(image)


def _change(old: str, operator: str, value: str) -> str:
    return old + value if operator == "add" else value if operator == "replace" else ""
