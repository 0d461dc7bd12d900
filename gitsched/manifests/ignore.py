"""Which files of a tree are read at all: by name, and by the rules of `.sourceignore` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.manifests.kustomize import FILE_NAMES

if TYPE_CHECKING:
    from gitsched.manifests.rules import Rule

IGNORE_FILE = ".sourceignore"
MOST_RULES, LONGEST_RULE = 2_000, 1_024
"""Rules of a tree, and characters of one. Every file is held against every rule, whoever wrote them."""
_SUFFIXES = (".yaml", ".yml", ".json")


def is_candidate(path: str) -> bool:
    """Whether a path may hold documents: YAML or JSON by its name, and not inside a directory that begins with a dot."""
    directory, _, name = path.rpartition("/")
    if not name.endswith(_SUFFIXES) and name not in FILE_NAMES:
        return False
    return not name.startswith(".") and not directory.startswith(".") and "/." not in directory


class Excess(NamedTuple):
    """The first line of a file that is not heeded, counted from 1, and whether it is too long; else it is one too many."""

    directory: str
    line: int
    long: bool


class Ignore:
    """The rules of the `.sourceignore` files of one tree; those of a deeper directory come later, so they win.

    As for git, what is in an excluded directory is excluded, whatever else is said of it.
    """

    __slots__ = ("_known", "_rules", "excess")

    def __init__(self, rules: tuple[tuple[str, Rule], ...], excess: tuple[Excess, ...] = ()) -> None:
        self._rules, self.excess = tuple(reversed(rules)), excess
        self._known: dict[str, bool] = {}

    @classmethod
    def parse(cls, files: Mapping[str, str]) -> Ignore:
        """Rules from the texts of `.sourceignore` files by directory ("" for the root). Lines that are no pattern are skipped."""
        if not any(files.values()):
            return cls(())
        from gitsched.manifests.rules import read_rule  # most repositories have no such file

        rules: list[tuple[str, Rule]] = []
        excess = []
        for directory, text in sorted(files.items(), key=lambda entry: (entry[0].count("/") + bool(entry[0]), entry[0])):
            prefix = f"{directory.strip('/')}/" if directory.strip("/") else ""
            for number, line in enumerate(text.split("\n"), start=1):
                long = len(line) > LONGEST_RULE and not line.startswith("#")
                rule = None if long else read_rule(line)
                if long or (rule is not None and len(rules) >= MOST_RULES):
                    excess.append(Excess(directory, number, long))
                    break
                if rule is not None:
                    rules.append((prefix, rule))
        return cls(tuple(rules), tuple(excess))

    def match(self, path: str) -> bool:
        """Whether the rules exclude a file: the last rule that speaks of it decides, and before that those about its directories."""
        if not self._rules:
            return False
        cut = path.find("/")
        while cut >= 0:
            directory = path[:cut]
            if directory not in self._known:
                self._known[directory] = self._judge(directory, is_directory=True)
            if self._known[directory]:
                return True
            cut = path.find("/", cut + 1)
        return self._judge(path, is_directory=False)

    def _judge(self, path: str, *, is_directory: bool) -> bool:
        for prefix, rule in self._rules:
            if path.startswith(prefix) and (is_directory or not rule.directories) and rule.pattern.fullmatch(path, len(prefix)):
                return rule.excludes
        return False
