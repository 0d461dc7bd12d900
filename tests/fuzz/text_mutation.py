"""Mutations of YAML texts: of their documents, of their lines and of their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import yaml

from .mutation import mutate
from .yaml_inputs import CONSTRUCTS

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MAX_SIZE = 60_000
_BITS = (
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"\t",
    b"\n---\n",
    b"\n...\n",
    b": ",
    b"- ",
    b"[",
    b"}",
    b"&a ",
    b"*a",
    b"!!binary ",
    b"<<: ",
    b"|\n",
)


def mutate_text(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """Return a changed copy of a text; `others` are texts that it may be mixed with."""
    for _ in range(random.choice((1, 1, 2, 3))):
        data = random.choices(_MUTATIONS, _WEIGHTS)[0](data, random, others)
    return data[:MAX_SIZE]


def _mutate_documents(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    sections = data.split(b"\n---\n")
    chosen = random.randrange(len(sections))
    try:
        body = yaml.load(sections[chosen], Loader=_LOADER)
        if isinstance(body, dict | list) and body:
            changed = yaml.dump(mutate(body, random, random.choice((1, 1, 2))), Dumper=_DUMPER, allow_unicode=True, sort_keys=False)
            head = sections[chosen].split(b"\n", 1)[0] if sections[chosen].startswith(b"#") else b""
            sections[chosen] = head + (b"\n" if head else b"") + changed.encode("utf-8", "surrogatepass").rstrip(b"\n")
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        return _mutate_bytes(data, random, others)
    return b"\n---\n".join(sections)


def _mutate_bytes(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    place = random.randrange(len(data) + 1)
    end = min(len(data), place + random.choice((0, 0, 1, 4, 30)))
    return data[:place] + random.choice((b"", random.choice(_BITS), random.randbytes(2))) + data[end:]


def _mutate_lines(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(4)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, lines[other])
    elif kind == 2:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines[place] = b" " * random.randrange(5) + lines[place].lstrip()
    return b"\n".join(lines)


def _mix(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    if not others:
        return data
    sections, more = data.split(b"\n---\n"), random.choice(others).split(b"\n---\n")
    sections.insert(random.randrange(len(sections) + 1), random.choice(more))
    return b"\n---\n".join(sections)


def _remove_section(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    sections = data.split(b"\n---\n")
    del sections[random.randrange(len(sections))]
    return b"\n---\n".join(sections)


def _add_construct(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    text = CONSTRUCTS[random.choice(list(CONSTRUCTS))](random.choice((300, 3_000)))
    return data + b"\n---\n" + text.encode("utf-8", "surrogatepass")


_MUTATIONS = (_mutate_documents, _mutate_bytes, _mutate_lines, _mix, _remove_section, _add_construct)
_WEIGHTS = (60, 10, 10, 12, 5, 3)
