"""Names of modules, classes and functions use the field's terms: no retired word, no class name defined twice, modules are nouns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "development" / "architecture.md"
HOMONYMS = {
    ("sweep", "benchmarks/sweep.py"): "what `simulate --sweep` does",
    ("page", "gitsched/report/page/*"): "the HTML page of `plan -o html`",
    ("page", "gitsched/cli/html_reports.py"): "the HTML page of `plan -o html`",
    ("page", "gitsched/watch/*"): "the HTML pages of `watch --listen`",
    ("page", "tests/watch/test_live_pages.py"): "the HTML pages of `watch --listen`",
    ("page", "tests/docs/*"): "a page of the documentation",
    ("page", "tests/cli/test_command_documentation.py"): "a page of the documentation",
    ("page", "gitsched/query/*"): "a page of a database",
    ("page", "tests/query/*"): "a page of a database",
}
"""(retired word, path) → the usual meaning that the word has there."""
SHARED_CLASS_NAMES: Mapping[str, str] = {}
"""Public class name that several modules of gitsched define → why."""
NOUNS_IN_ING = {"binding", "breaking", "defaulting", "finding", "scheduling", "string", "timing"}
"""Nouns that a module name may end in; any other word in -ing is a verb."""
DEFINITION = re.compile(r"^[ ]*(?:async )?(class|def) (\w+)", re.MULTILINE)
"""Also those in the texts of programs, which are written in the same words; parsing every module would take a second."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
ENDINGS = ("", "s", "es", "d", "ed", "ing", "er", "ers")


class Definition(NamedTuple):
    """A module, class or function. `path` is relative to the repository."""

    path: str
    line: int
    kind: str
    name: str


@cache
def split_words(name: str) -> list[str]:
    """Split a name in snake_case or CamelCase into its words, in lower case."""
    return [word.lower() for word in WORD.findall(name)]


@cache
def list_definitions(root: Path, top: str) -> tuple[Definition, ...]:
    """Return all modules below root/top with their classes and functions, nested ones and methods included."""
    return tuple(_find_definitions(root, top))


def _find_definitions(root: Path, top: str) -> Iterator[Definition]:
    for path in sorted((root / top).rglob("*.py")):
        relative = path.relative_to(root).as_posix()
        yield Definition(relative, 1, "module", path.parent.name if path.stem == "__init__" else path.stem)
        text = path.read_text(encoding="utf-8")
        for found in DEFINITION.finditer(text):
            yield Definition(
                relative, text.count("\n", 0, found.start()) + 1, "class" if found[1] == "class" else "function", found[2]
            )


@cache
def read_retired_words() -> dict[str, str]:
    """Return the table "Retired words" of docs/development/architecture.md: word → what to write instead."""
    _, _, section = GLOSSARY.read_text(encoding="utf-8").partition("### Retired words\n")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return {word: instead for words, instead in rows if words != "retired" for word in words.split(", ")}


@cache
def retired_forms() -> dict[str, str]:
    """Return every retired word in its inflected forms: form → word."""
    forms = {}
    for word in read_retired_words():
        stems = {word, word.removesuffix("s")} if word == "stamps" else {word}
        for stem in stems:
            forms |= {stem + ending: word for ending in ENDINGS}
            if stem.endswith("e"):
                forms |= {stem[:-1] + ending: word for ending in ("ing", "er", "ers")}
    return forms


def find_retired_word(definition: Definition) -> str | None:
    """Return the retired word in the name of a definition, unless it is a homonym in this file."""
    for word in split_words(definition.name):
        retired = retired_forms().get(word)
        if retired and not any(retired == homonym and fnmatchcase(definition.path, glob) for homonym, glob in HOMONYMS):
            return retired
    return None


@pytest.mark.parametrize("top", ["gitsched", "tests", "benchmarks"])
def test_no_name_has_a_retired_word(top: str) -> None:
    found = [(definition, find_retired_word(definition)) for definition in list_definitions(ROOT, top)]
    assert [
        f"{path}:{line}: {kind} {name}: instead of {word!r} use: {read_retired_words()[word]}"
        for (path, line, kind, name), word in found
        if word
    ] == []


def test_every_public_class_of_gitsched_has_a_name_of_its_own() -> None:
    paths = defaultdict(list)
    for definition in list_definitions(ROOT, "gitsched"):
        if definition.kind == "class" and not definition.name.startswith("_"):
            paths[definition.name].append(definition.path)
    assert {name: found for name, found in paths.items() if len(found) > 1 and name not in SHARED_CLASS_NAMES} == {}
    assert {name for name in SHARED_CLASS_NAMES if len(paths[name]) < 2} == set(), "remove what is defined once"


def test_modules_of_gitsched_are_nouns() -> None:
    modules = {definition.name: definition.path for definition in list_definitions(ROOT, "gitsched") if definition.kind == "module"}
    last_words = {path: split_words(name)[-1] for name, path in modules.items() if split_words(name)}
    assert [path for path, word in last_words.items() if word.endswith("ing") and word not in NOUNS_IN_ING] == []


def test_every_homonym_is_still_needed() -> None:
    definitions = [found for top in ("gitsched", "tests", "benchmarks") for found in list_definitions(ROOT, top)]
    for (word, glob), reason in HOMONYMS.items():
        assert reason
        named = [found for found in definitions if fnmatchcase(found.path, glob)]
        assert any(retired_forms().get(part) == word for found in named for part in split_words(found.name)), (word, glob)


def test_the_table_of_retired_words_is_complete() -> None:
    words = read_retired_words()
    expected = (
        "shelf book page front edition ground aftermath calm custody bell stamps canvas picture loose holding reminding recollection "
        "foresight crowding exile ill flee tell heard manner ask stock crowd room lot teller memo twin strange odd mend harm silent waive "
        "homeless lived undisturbed told said judge vouch sweep ring heed moment anew"
    )
    assert set(expected.split()) - words.keys() == set()
    assert all(words.values())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("read_shelf", "shelf"),
        ("PlanShelf", "shelf"),
        ("shelfMark", "shelf"),
        ("rooms", "room"),
        ("test_what_is_judged", "judge"),
        ("telling", "tell"),
        ("HTTPBell", "bell"),
        ("stamp_files", "stamps"),
    ],
)
def test_the_check_finds_a_retired_word(name: str, word: str) -> None:
    assert find_retired_word(Definition("x.py", 1, "function", name)) == word


@pytest.mark.parametrize("name", ["timestamp", "Bookmark", "allotment", "mushroom", "skill", "intelligent", "moments_later"[-5:]])
def test_the_check_compares_words_not_parts_of_words(name: str) -> None:
    assert find_retired_word(Definition("x.py", 1, "function", name)) is None


def test_the_check_looks_at_modules_nested_functions_and_methods(tmp_path: Path) -> None:
    package = tmp_path / "p" / "shelf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "class Outer:\n    def method(self):\n        async def nested(): ...\n        class Inner: ...\n"
    )
    assert [(found.kind, found.name) for found in list_definitions(tmp_path, "p")] == [
        ("module", "shelf"),
        ("class", "Outer"),
        ("function", "method"),
        ("function", "nested"),
        ("class", "Inner"),
    ]
