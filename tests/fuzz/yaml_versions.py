"""Compare what is found in YAML texts with several versions of PyYAML: `python -m tests.fuzz.yaml_versions --texts N VERSION...`.

Each version is installed into a temporary directory, and reads the same texts in a process of its own. Documents and findings must be the
same, with messages and positions. Exits with 1 after a difference, which is printed with its text.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from random import Random

from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file

from .yaml_agreement import mutate, read_texts
from .yaml_inputs import CONSTRUCTS, HEAD

ROOT = Path(__file__).parents[2]
_DEPTHS = (
    *(1, 3, 48, 99, 100, 101, 150, 198, 199, 200, 201, 202, 250, 500),
    *(799, 800, 997, 998, 999, 1000, 1001, 1002, 1023, 1025, 3000),
)
_OPENERS = (
    *("[", "[ ", "{", "{a: ", "{? ", "[? ", "[a, ", "- ", "? ", "- - ? ", "[\n", "[{", "- [", ": "),
    *('["a", ', "&a [", "!t [", "['", "a: ["),
)
_CLOSERS = {"[": "]", "{": "}"}
_NOISE = (
    *("@", "`", "%", "\t", "*x", "&x ", "&x", "!", "!x!y ", "!<", "'", '"', '"\\q"', "'a' 'b'", "a b", "a: b: c", ": ", ":", "?"),
    *("? ]", "]", "}", ",", "- ", "-", "#", " #c\n", "\n", "\n\n", "\r", "\u2028", "\x85", "\ufeff", "\x00", "\x1b", "...\n"),
    *("\n---\n", "--- ", "|", "|0\n", "|+1\n x\n", ">-\n", "<<: ", "%YAML 1.1\n", "%YAML 2.0\n", "%TAG !x! y\n"),
    *("x" * 1030 + ": 1", "kind: A", " " * 60),
)
_STARTS = (
    *("", "", HEAD, HEAD + "data:\n ", HEAD + "data: ", "a: 1\n", "- a\n- ", "--- ", "%YAML 1.1\n--- ", HEAD + "---\n"),
    '{"kind": ',
)


def _make_nesting(random: Random) -> str:
    """Return collections that nest up to a limit or beyond it, with errors before, inside and behind them."""
    count = random.choice(_DEPTHS)
    opener = random.choice(_OPENERS)
    units = [opener] * count if random.random() < 0.5 else random.choices((opener, random.choice(_OPENERS)), k=count)
    for _ in range(random.choice((0, 0, 1, 2))):
        units.insert(random.randrange(len(units) + 1), random.choice(_NOISE))
    text = "".join(units)
    if random.random() < 0.5:
        text += "a" + "".join(_CLOSERS[unit] for unit in reversed(text) if unit in _CLOSERS)
    return random.choice(_STARTS) + text + random.choice(("", "\n", random.choice(_NOISE), "\n---\n" + HEAD, ": x\n"))


def _make_stairs(random: Random) -> str:
    """Return block collections that nest by indentation."""
    step = random.choice(("a:", "-", "- a:", "? a", "a: {b:", "- ["))
    lines = [" " * (level * len(step)) + step for level in range(random.choice((20, 47, 49, 99, 101, 199, 201, 260)))]
    if random.random() < 0.5:
        lines.insert(random.randrange(len(lines)), random.choice(_NOISE))
    return random.choice(_STARTS) + "\n".join(lines)


def _make_soup(random: Random) -> str:
    tokens = (*_OPENERS, *_NOISE, "a", "b: c", "\n  ", "\n", "\n- ", "'x'", '"y"', "{{ .a }}", "kind: A\n", "apiVersion: v1\n")
    return random.choice(_STARTS) + "".join(random.choices(tokens, k=random.randint(1, 14)))


def _make_construct(random: Random) -> str:
    text = CONSTRUCTS[random.choice(list(CONSTRUCTS))](random.choice((300, 3_000, 30_000)))
    return text if random.random() < 0.7 else mutate(text, random)


def generate_hostile_texts(seed: int) -> Iterator[str]:
    """Yield nested collections and random tokens without end, which depend only on the seed."""
    random = Random(seed)
    while True:
        yield random.choice((_make_nesting, _make_stairs, _make_soup, _make_soup))(random)


def generate_texts(seed: int) -> Iterator[str]:
    """Yield texts without end: nested collections, constructs of YAML, random tokens and mutations of the manifests of the examples."""
    random, manifests = Random(seed), read_texts([ROOT / "examples"])
    makers: tuple[Callable[[Random], str], ...] = (
        *(_make_nesting, _make_stairs, _make_soup, _make_soup, _make_construct),
        lambda random: mutate(random.choice(manifests), random),
    )
    while True:
        yield random.choices(makers, (30, 6, 20, 20, 4, 20))[0](random)


def describe(text: str, path: str = "a.yaml") -> str:
    """Return what is found in a text: its documents, which are shortened, and its findings."""
    file = parse_file(text.encode("utf-8", "surrogatepass"), path=path, validate=validate_document)
    documents = sha256(json.dumps(file.documents).encode()).hexdigest()[:12] if file.documents else ""
    return json.dumps([file.status, file.reason, documents, file.unreadable, file.others, file.issues])


def _describe_all(texts: int, seed: int) -> None:
    generated = generate_texts(seed)
    for _ in range(texts):
        print(describe(next(generated)))


def _start(version: str, texts: int, seed: int, directory: Path) -> subprocess.Popen[str]:
    """Start a process that describes all texts with a version of PyYAML."""
    target = directory / version
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        str(target),
    ]
    subprocess.run([*install, f"pyyaml=={version}"], check=True)
    command = [sys.executable, "-m", __spec__.name, "--texts", str(texts), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(target), "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def _compare(versions: list[str], texts: int, seed: int) -> int:
    """Return the number of texts in which versions find something else."""
    differing = 0
    with tempfile.TemporaryDirectory() as directory:
        processes = [_start(version, texts, seed, Path(directory)) for version in versions]
        outputs = [process.stdout for process in processes if process.stdout is not None]
        for text, found in zip(
            generate_texts(seed), zip_longest(*outputs, fillvalue="nothing: the process has ended\n"), strict=False
        ):
            if len(set(found)) > 1:
                differing += 1
                print(
                    repr(text[:3000]),
                    *(f"{version}: {line[:2000]}" for version, line in zip(versions, found, strict=True)),
                    sep="\n",
                )
        failed = [process.wait() for process in processes]
    return differing + sum(map(bool, failed))


def main() -> int:
    """Compare, or without a version describe the texts with the installed one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("versions", nargs="*")
    options = parser.parse_args()
    if not options.versions:
        _describe_all(options.texts, options.seed)
        return 0
    differing = _compare(options.versions, options.texts, options.seed)
    print(f"{options.texts} texts, {differing} differences")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
