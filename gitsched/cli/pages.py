"""Pages of the documentation that the program reads, too."""

from __future__ import annotations

from importlib.resources import files


def read_page(name: str) -> str:
    """A page of docs/: in a wheel it lies in gitsched/docs, in a checkout beside the package."""
    package = files("gitsched")
    inside = package.joinpath("docs")
    return (inside if inside.is_dir() else package.joinpath("..", "docs")).joinpath(name).read_text("utf-8")
