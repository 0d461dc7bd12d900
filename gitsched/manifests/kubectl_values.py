"""Read a document that the two readers of Kubernetes read differently as kubectl does, where it is known that no other one reads it."""

from __future__ import annotations

from typing import Any

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.plain_scalars import NON_STRING_KEY
from gitsched.manifests.reader_differences import find_differences
from gitsched.manifests.yaml_composer import YamlDocument, check_aliases, compose_documents
from gitsched.manifests.yaml_errors import ParseError
from gitsched.manifests.yaml_nodes import AMBIGUOUS_VALUE, Constructor
from gitsched.named_tuples import NamedTuple

READINGS = frozenset((AMBIGUOUS_VALUE, NON_STRING_KEY))
"""The codes of differences that do not matter once it is known which reader reads the document."""


class KubectlValue(NamedTuple):
    """The value of a document as kubectl reads it, and what kustomize reads as another value."""

    value: Any
    differences: tuple[ParseError, ...]


def find_kubectl_value(text: str) -> KubectlValue | None:
    """Return how kubectl reads a document; None if kustomize reads the same, or if the text is not one document that kubectl reads."""
    pieces = list(compose_documents(text, DEFAULT_LIMITS))
    if len(pieces) != 1 or not isinstance(tree := pieces[0], YamlDocument) or check_aliases(tree, DEFAULT_LIMITS):
        return None
    read = Constructor(tree.line, tree.node)
    if read.errors or not read.differences or not {one.code for one in read.differences} <= READINGS:
        return None
    if find_differences(text, tree, tree.offset).errors:
        return None  # kubectl may read another value than the constructor, or none
    return KubectlValue(read.value, tuple(read.differences))
