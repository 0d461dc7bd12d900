"""What gitsched relies on in `yaml._yaml`, a private module of PyYAML: libyaml's parser as a class whose composer can be changed.

A failure here, after an update of PyYAML, says which part is gone or behaves otherwise. See gitsched/manifests/yaml_composer.py, and the
bounds of `pyyaml` in pyproject.toml.
"""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from yaml import MappingNode, MarkedYAMLError, ScalarNode, SequenceNode

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def parser_class() -> Any:
    try:
        return importlib.import_module("yaml._yaml").CParser
    except (ImportError, AttributeError) as problem:
        pytest.fail(f"PyYAML {yaml.__version__} has no yaml._yaml.CParser, with which gitsched reads YAML: {problem}")


@pytest.mark.parametrize("name", ["check_event", "get_event", "check_node", "get_node", "dispose"])
def test_the_parser_has_the_methods_that_are_called(parser_class: Any, name: str) -> None:
    assert callable(getattr(parser_class, name, None)), f"PyYAML {yaml.__version__}: yaml._yaml.CParser has no {name}()"


def test_events_are_exactly_of_yamls_own_classes(parser_class: Any) -> None:
    """The classes are compared with `is`, which fails for a subclass."""
    parser, classes = parser_class("a: [b]\n"), []
    while parser.check_event():
        classes.append(parser.get_event().__class__)
    parser.dispose()
    names = ["StreamStart", "DocumentStart", "MappingStart", "Scalar", "SequenceStart", "Scalar", "SequenceEnd", "MappingEnd"]
    assert classes == [getattr(yaml, f"{name}Event") for name in (*names, "DocumentEnd", "StreamEnd")]


def test_the_composer_resolves_tags_by_the_class(parser_class: Any) -> None:
    """`resolve`, `descend_resolver` and `ascend_resolver` are called for each node, and what `resolve` returns becomes its tag."""
    calls: list[str] = []

    class Composer(parser_class):  # type: ignore[misc]  # the class is only known when the test runs
        def resolve(self, kind: type, value: Any, implicit: Any) -> str:
            calls.append(f"{kind.__name__} {value}")
            return ""

        def descend_resolver(self, parent: Any, index: Any) -> None:
            calls.append("down")

        def ascend_resolver(self) -> None:
            calls.append("up")

    parser = Composer("a: 'b'\n")
    node = parser.get_node() if parser.check_node() else None
    parser.dispose()
    assert isinstance(node, MappingNode)
    assert node.tag == ""
    assert [call for call in calls if call not in ("down", "up")] == ["MappingNode None", "ScalarNode a", "ScalarNode b"]
    assert calls.count("down") == calls.count("up") == 3


def test_nodes_have_styles_tags_and_places(parser_class: Any) -> None:
    class Composer(parser_class):  # type: ignore[misc]  # as above
        resolve = descend_resolver = ascend_resolver = "".format

    parser = Composer("é: 1\nlist:\n- 'x'\n- !!str y\n")
    assert parser.check_node()
    node = parser.get_node()
    parser.dispose()
    (key, one), (_, listing) = node.value
    assert isinstance(key, ScalarNode)
    assert isinstance(listing, SequenceNode)
    assert [(entry.tag, entry.style) for entry in (one, *listing.value)] == [("", ""), ("", "'"), ("tag:yaml.org,2002:str", "")]
    marks = [(entry.start_mark.line, entry.start_mark.column, entry.start_mark.index) for entry in (one, *listing.value)]
    assert marks == [(0, 3, 3), (2, 2, 13), (3, 2, 19)], "places no longer count characters from 0"


def test_a_syntax_error_has_its_place_and_libyamls_words(parser_class: Any) -> None:
    parser = parser_class("a: b: c\n")
    with pytest.raises(MarkedYAMLError) as caught:
        list(iter(parser.get_event, None))
    parser.dispose()
    mark = caught.value.problem_mark
    assert (caught.value.problem, mark.line, mark.column, mark.index) == ("mapping values are not allowed in this context", 0, 4, 4)


def test_the_version_has_an_upper_bound() -> None:
    """A private name can disappear in any minor version; the installed version is inside the declared bounds."""
    packages = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    bounds = next(entry for entry in packages if entry.startswith("pyyaml"))
    assert bounds.partition(";")[0] == "pyyaml>=6.0.2,<6.1"
    assert yaml.__version__.startswith("6.0.")
