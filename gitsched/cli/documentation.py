"""The pages of docs/, from which commands print."""

from __future__ import annotations

from importlib.resources import files


def read_documentation(name: str) -> str:
    """Return a page of docs/, which is in gitsched/docs in a wheel and next to the package in a checkout."""
    package = files("gitsched")
    inside = package.joinpath("docs")
    return (inside if inside.is_dir() else package.joinpath("..", "docs")).joinpath(name).read_text("utf-8")
