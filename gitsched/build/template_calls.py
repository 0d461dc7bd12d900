"""Find what templates of Helm charts render that does not follow from the files of the commit: random values, the time, and objects of
the cluster."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping

from gitsched.build.commit_files import BuildProblem

_ACTION = re.compile(rb"\{\{(?!-?\s*/\*).*?\}\}", re.DOTALL)
_RANDOM = re.compile(
    rb"(?<![\w.$\"])(?:rand(?:AlphaNum|Alpha|Ascii|Numeric|Bytes|Int)|gen(?:PrivateKey|CA|CAWithKey|SelfSignedCert|SelfSignedCertWithKey|"
    rb"SignedCert|SignedCertWithKey)|uuidv4|shuffle|bcrypt|htpasswd|encryptAES|now|ago)(?![\w.\"])"
)
"""Functions of Helm's templates that return something else each time."""
_EVALUATE = re.compile(rb"(?<![\w.$\"])tpl(?=[\s(])")
"""The function that evaluates a text as a template: values and other files may call functions as well."""
_LOOKUP = re.compile(rb"(?<![\w.$\"])lookup(?=\s)")
_NOW = re.compile(rb"(?<![\w.$\"])now(?![\w.\"])")
_ANOTHER_TIME = b'(toDate "2006-01-02" "2001-02-03")'
_ARCHIVES = (".tgz", ".tar.gz")
_MAX_ARCHIVE = 100 << 20
"""Bytes that an archive with a chart may unpack to, as helm itself limits them."""


def is_error(problem: BuildProblem) -> bool:
    """Return whether nothing is built because of a problem."""
    return problem.code != "helm-lookup"


def check_stable(
    name: str,
    files: Mapping[str, bytes],
    output: bytes,
    render: Callable[[Mapping[str, bytes]], bytes | str],
    inline: Mapping[str, bytes] | None = None,
) -> list[BuildProblem]:
    """Return an error if another rendering or another time changes the output, and a warning if the result of `lookup` does.

    `files` are those of the charts by path, `inline` have values that are in no file; `render` returns the output with other contents for
    some of them. It is called only if a template calls one of these functions, or evaluates texts, which may call any of them.
    """
    large = next((path for path, data in files.items() if path.endswith(_ARCHIVES) and len(_decompress(data)) > _MAX_ARCHIVE), None)
    if large is not None:
        text = f"the archive unpacks to more than {_MAX_ARCHIVE} bytes: {name} is not rendered"
        return [BuildProblem("helm-build", text, large)]
    evaluated = next(_list_evaluations(files), None)
    calls = [*_list_calls(files, evaluated is not None), *([evaluated] if evaluated is not None else [])]
    templates = {path: data for path, data in files.items() if _is_template(path)}
    if evaluated is not None:
        templates = {**{path: data for path, data in files.items() if not path.endswith(_ARCHIVES)}, **(inline or {})}
    random = next(((path, line, call) for path, line, call in calls if call != "lookup"), None)
    lookup = next(((path, line) for path, line, call in calls if call == "lookup"), None)

    def depends_on(call: re.Pattern[bytes], replacement: bytes) -> bool:
        return render({path: _replace_calls(data, call, replacement) for path, data in templates.items()}) != output

    if random is not None and depends_on(_NOW, _ANOTHER_TIME):
        text = f"{name} renders something else each time, as with {random[2]} here: set the value that it makes up"
        return [BuildProblem("helm-random", text, *random[:2])]
    if lookup is not None and depends_on(_LOOKUP, b"dict"):  # dict takes the same arguments, and its result is not empty
        text = f"{name} uses lookup, which finds nothing here: it is rendered as for a cluster without these objects"
        return [BuildProblem("helm-lookup", text, *lookup)]
    return []


def _is_template(path: str) -> bool:
    return "/templates/" in f"/{path}" and not path.endswith("/NOTES.txt")


def _list_evaluations(files: Mapping[str, bytes]) -> Iterator[tuple[str, int, str]]:
    """Yield the calls of the function that evaluates texts: path, line, and name."""
    for path, data in sorted(files.items()):
        if _is_template(path):
            for action in _ACTION.finditer(data):
                for call in _EVALUATE.finditer(action[0]):
                    yield path, data.count(b"\n", 0, action.start() + call.start()) + 1, call[0].decode()
        elif path.endswith(_ARCHIVES) and _EVALUATE.search(_decompress(data)):
            yield path, 1, "tpl"


def _list_calls(files: Mapping[str, bytes], everywhere: bool) -> Iterator[tuple[str, int, str]]:
    """Yield the calls of random functions and of lookup in templates, or `everywhere`: path, line, and name."""
    for path, data in sorted(files.items()):
        if _is_template(path) or (everywhere and not path.endswith(_ARCHIVES)):
            for action in _ACTION.finditer(data):
                for call in (*_RANDOM.finditer(action[0]), *_LOOKUP.finditer(action[0])):
                    line = data.count(b"\n", 0, action.start() + call.start()) + 1
                    yield path, line, call[0].decode()
        elif path.endswith(_ARCHIVES):
            in_archive = _RANDOM.search(_decompress(data))
            if in_archive:
                yield path, 1, in_archive[0].decode()


def _decompress(data: bytes) -> bytes:
    """Return what the members of an archive unpack to, at most one byte more than the limit; what follows an error is not unpacked."""
    found = bytearray()
    while data and len(found) <= _MAX_ARCHIVE:
        unpacker = zlib.decompressobj(wbits=31)
        try:
            found += unpacker.decompress(data, _MAX_ARCHIVE + 1 - len(found))
        except zlib.error:
            break
        if not unpacker.eof:
            break
        data = unpacker.unused_data
    return bytes(found)


def _replace_calls(data: bytes, call: re.Pattern[bytes], replacement: bytes) -> bytes:
    return _ACTION.sub(lambda action: call.sub(replacement, action[0]), data)
