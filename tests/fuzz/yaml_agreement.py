"""Compare the two parsers of manifests on files and on mutations of them: `python -m tests.fuzz.yaml_agreement --documents N DIRECTORY...`.

Where the fast parser reads a file, its result must be that of PyYAML, with every value, type, offset and position. Exits with 1 after a
difference, which is printed with its text. Directories are searched for *.yaml and *.yml.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gitsched.manifests.parser import parse_file
from gitsched.manifests.subset_parser import parse_common_file

EDITABLE = ("spec.replicas", "spec.parallelism", "spec.minReplicas", "spec.template.spec.replicas", "data.size", "size")
_TOKENS = (
    *(
        "- ",
        ": ",
        ":",
        "#",
        " #",
        "'",
        '"',
        "|",
        ">",
        "|-",
        ">+",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!",
        "!!str ",
        "%",
        "@",
        "`",
        "? ",
    ),
    *(
        "~",
        "yes",
        "no",
        "on",
        "Off",
        "true",
        "True",
        "null",
        "NULL",
        "y",
        "0x1f",
        "0o17",
        "017",
        "1e3",
        "1_000",
        "_1",
        "__1.5",
        "1.0",
        ".5",
        "+1",
        "-0",
    ),
    *(
        "12:30:45",
        "2001-01-01",
        ".inf",
        ".nan",
        "-",
        "--",
        "---",
        "...",
        "<<",
        "<<: ",
        "=",
        "\\",
        "\\n",
        "\\x41",
        "\t",
        "\r",
        "\n",
        "\n\n",
    ),
    *(
        " ",
        "  ",
        "    ",
        "\ufeff",
        "\x85",
        "\u2028",
        "é",
        "😀",
        "a",
        "a: b",
        "a:b",
        "size: 1",
        "status:",
        "uid: a",
        "replicas: 3",
        "kind: A",
        "1",
        "99999999999999999999",
    ),
)


class Difference(NamedTuple):
    """A text on which the parsers disagree, and both results."""

    text: str
    common: object
    reference: object


def compare(text: str) -> Difference | bool:
    """Return the difference of the parsers; without one, whether the fast parser reads the text."""
    common = parse_common_file(text, None, EDITABLE)
    if common is None:
        return False
    reference = parse_file(text.encode(), path="a.yaml", validate=None, editable=EDITABLE)
    return True if _mark_types(common) == _mark_types(reference) else Difference(text, common, reference)


def _mark_types(value: Any) -> object:
    """Return a value in which 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return [(_mark_types(name), _mark_types(inner)) for name, inner in value.items()]
    if isinstance(value, list | tuple):
        return [_mark_types(inner) for inner in value]
    return type(value), value


def mutate(text: str, random: Random) -> str:
    """Change a text in one to three places: lines move, repeat, vanish, or change their indentation; tokens come and go."""
    for _ in range(random.randint(1, 3)):
        lines = text.split("\n")
        at = random.randrange(len(lines))
        match random.randrange(8):
            case 0:
                lines[at] = " " * random.randint(0, 6) + lines[at].lstrip(" ")
            case 1:
                lines[at:at] = [lines[random.randrange(len(lines))]]
            case 2:
                del lines[at]
            case 3:
                lines[at] = lines[at].rstrip() + random.choice((" ", "  ", " # c", "#c", ":", ","))
            case 4:
                key, colon, _ = lines[at].partition(": ")
                lines[at] = key + (colon or " ") + random.choice(_TOKENS) + random.choice(("", random.choice(_TOKENS)))
            case 5:
                other = random.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 6:
                lines[at:at] = [" " * random.randint(0, 8) + random.choice(_TOKENS) + random.choice(_TOKENS)]
            case _:
                column = random.randint(0, len(lines[at]))
                lines[at] = lines[at][:column] + random.choice(_TOKENS) + lines[at][column:]
        text = "\n".join(lines)
    return text


def generate(texts: list[str], random: Random) -> Iterator[str]:
    """Yield the texts, then mutations of them without end."""
    yield from texts
    while texts:
        yield mutate(random.choice(texts), random)


def read_texts(directories: Iterable[Path]) -> list[str]:
    """Return the manifests below directories."""
    found = []
    for directory in directories:
        for path in sorted(path for path in directory.rglob("*.y*ml") if path.is_file()):
            data = path.read_bytes()
            try:
                found.append(data.decode())
            except UnicodeDecodeError:
                continue
    return [text for text in found if "kind" in text]


def main() -> int:
    """Compare until the number of documents is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("directories", nargs="+", type=Path)
    options = parser.parse_args()
    read = differing = seen = 0
    for text in generate(read_texts(options.directories), Random(options.seed)):
        outcome = compare(text)
        if isinstance(outcome, Difference):
            differing += 1
            print(f"{outcome.text}\n--- {outcome.common}\n+++ {outcome.reference}\n", flush=True)
        else:
            read += outcome
        seen += 1
        if read >= options.documents:
            break
    print(f"{seen} texts, {read} read by both parsers, {differing} differences")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
