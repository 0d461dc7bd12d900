"""The build id: caches on disk are used only by the build that wrote them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from gitsched import __version__
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine
from gitsched.decide import registry
from gitsched.reconcile import package_digest
from gitsched.reconcile.package_digest import identify_package, list_plugins
from gitsched.schedule import fleet, selection
from gitsched.schedule.plugins import register_filter, register_selection_filter

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


FILTER = """\
class Filter:
    name, version = "Added", "1"
    def mask(self, request, group, fleet, previous):
        return fleet.all
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module with a filter, in a process that has added nothing."""
    monkeypatch.setattr(fleet, "FILTERS", fleet.FILTERS)
    monkeypatch.setattr(selection, "SELECTION_FILTERS", selection.SELECTION_FILTERS)
    monkeypatch.setattr(registry, "policy_apis", dict(registry.policy_apis))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "added_filter", raising=False)
    (tmp_path / "added_filter.py").write_text(FILTER)
    return import_module("added_filter")


def test_a_build_without_plugins_is_that_of_its_files() -> None:
    assert list_plugins() == []
    assert package_digest.identify_code.__wrapped__() == package_digest.identify_files()


def test_what_a_program_adds_is_a_part_of_the_build(added: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def identify() -> tuple[str, str]:
        return package_digest.identify_code.__wrapped__(), package_digest.compute_package_digest.__wrapped__(tmp_path)

    seen = [identify()]
    one = added.Filter()
    for register in (register_filter, register_selection_filter):
        register(one)
        seen.append(identify())
    assert identify() == seen[-1]
    monkeypatch.setattr(fleet, "FILTERS", fleet.FILTERS[::-1])
    seen.append(identify())
    one.version = "2"
    seen.append(identify())
    (tmp_path / "added_filter.py").write_text(f"{FILTER}# changed\n")
    seen.append(identify())
    registry.policy_apis["site"] = PolicyAPI(name="site", groups=frozenset({"example.com"}), create_engine=PolicyEngine)
    seen.append(identify())
    assert len(set(seen)) == len(seen)
    for column in zip(*seen, strict=True):
        assert len(set(column)) == len(column)


def test_a_filter_without_a_file_has_its_name_alone(added: ModuleType) -> None:
    del added.__file__
    register_filter(added.Filter())
    assert [row.split()[2:] for row in list_plugins()][-1] == ["Added", "added_filter.Filter", "1"]
