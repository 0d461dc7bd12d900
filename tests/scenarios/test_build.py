"""The build id: caches on disk are used only by the build that wrote them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitsched import __version__
from gitsched.reconcile.package_digest import identify_package

RECORD = "gitsched/__init__.py,sha256=%s,3\ngitsched/__pycache__/__init__.cpython-311.pyc,,\n%sgitsched-%s.dist-info/RECORD,,\n"


def lay(place: Path, text: str = "one", time: int = 1) -> Path:
    """Write a package with one module and a schema beside it."""
    for path in (place / "gitsched" / "__init__.py", place / "schemas" / "core" / "Kind.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (time, time))
    return place / "gitsched"


def install(place: Path, digest: str = "abc", more: str = "") -> Path:
    """Write the same package with the RECORD file of an installer."""
    record = place / f"gitsched-{__version__}.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text(RECORD % (digest, more, __version__))
    return lay(place, time=hash(place.name) % 1000)


@pytest.mark.parametrize("changed", ["gitsched/__init__.py", "schemas/core/Kind.json"])
def test_an_edit_of_a_checkout_changes_the_build_id(tmp_path: Path, changed: str) -> None:
    package = lay(tmp_path)
    before = identify_package(package)
    assert identify_package(package) == before
    (tmp_path / changed).write_text("two")
    assert identify_package(package) != before


def test_the_same_wheel_has_the_same_build_id_on_every_machine(tmp_path: Path) -> None:
    one, two = install(tmp_path / "one"), install(tmp_path / "two", more="../../bin/gitsched,sha256=xyz,9\n")
    assert identify_package(one) == identify_package(two)
    assert identify_package(install(tmp_path / "three", digest="abd")) != identify_package(one)
