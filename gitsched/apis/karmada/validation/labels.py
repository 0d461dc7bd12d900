"""Validation of label and annotation keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.model.finding import Issue, Pointer
from gitsched.model.labels import is_label_key, is_label_value

_LABEL_FORMAT = "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
_MAX_ANNOTATIONS_SIZE = 256 * 1024


def make_error(code: str, message: str, *pointer: str | int) -> Issue:
    return Issue("error", code, message, pointer)


def validate_label_key(value: Any, at: Pointer, code: str) -> Iterator[Issue]:
    if not is_label_key(value):
        yield make_error(code, f"{value!r} must be written like the key of a label: {_LABEL_FORMAT}", *at)


def validate_label_value(value: Any, at: Pointer, code: str) -> Iterator[Issue]:
    if not is_label_value(value):
        yield make_error(code, f"{value!r} must be written like the value of a label: empty, or {_LABEL_FORMAT}", *at)


def validate_labels(labels: Mapping[str, str], at: Pointer, code: str) -> Iterator[Issue]:
    for key, value in labels.items():
        yield from validate_label_key(key, (*at, key), code)
        yield from validate_label_value(value, (*at, key), code)


def validate_annotations(annotations: Mapping[str, str], at: Pointer, code: str) -> Iterator[Issue]:
    """Keys are compared in lower case, values are free, and together they are limited."""
    for key in annotations:
        yield from validate_label_key(key.lower(), (*at, key), code)
    if sum(len(text.encode(errors="surrogatepass")) for entry in annotations.items() for text in entry) > _MAX_ANNOTATIONS_SIZE:
        yield make_error(code, f"annotations may have {_MAX_ANNOTATIONS_SIZE} bytes at most", *at)
