"""The functions of Go templates in an ApplicationSet. Source: text/template of Go, Masterminds/sprig, argoproj/argo-cd/applicationset.

Each function has the types of its arguments, as Go checks them: S text, I whole number, B truth value, D map, L list, A anything. The last
one stands for any number of arguments if a `*` follows.
"""

from __future__ import annotations

import base64
import posixpath
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from gitsched.build.go_functions import (
    Integer,
    OwnMap,
    TemplateError,
    TextMap,
    is_empty,
    normalize_name,
    print_value,
)
from gitsched.build.template_texts import (
    BLANKS,
    clean_path,
    format_text,
    get_base_name,
    get_extension,
    indent_text,
    join_texts,
    list_texts,
    make_decoder,
    make_hash,
    print_all,
    quote_text,
    repeat_text,
    replace_text,
    slugify,
    sort_texts,
    split_text,
    substring,
    title_words,
    to_lower,
    to_upper,
    truncate_text,
    untitle_words,
)
from gitsched.build.template_values import (
    change_map,
    chunk_list,
    compare_values,
    convert_value,
    count_numbers,
    dig_value,
    divide,
    equals_any,
    has_value,
    index_value,
    is_less,
    list_unique,
    make_dict,
    measure_length,
    merge_maps,
    multiply,
    name_kind,
    read_json,
    read_json_or_fail,
    read_yaml,
    remove_key,
    slice_list,
    to_float,
    to_integer,
    wrap_integer,
    write_json,
    write_sequence,
)
from gitsched.build.template_yaml import write_yaml


def call_function(name: str, arguments: list[Any]) -> Any:
    """Return what a function returns. Raises TemplateError where Go fails, and NotEvaluatedError."""
    types, function = FUNCTIONS[name]
    rest = types.endswith("*")
    known = types.rstrip("*")
    if len(arguments) < len(known) - rest or (len(arguments) > len(known) and not rest):
        raise TemplateError(f"`{name}` has {len(arguments)} arguments, which is not the number that it takes")
    for index, argument in enumerate(arguments):
        if not _CHECKS[known[min(index, len(known) - 1)]](argument):
            raise TemplateError(f"`{name}` cannot take these values")
    try:
        return function(*arguments)
    except (TypeError, ValueError, AttributeError, IndexError, RecursionError):
        raise TemplateError(f"`{name}` cannot take these values") from None


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "S": lambda value: isinstance(value, str),
    "I": lambda value: isinstance(value, Integer),
    "B": lambda value: isinstance(value, bool),
    "D": lambda value: value is None or (isinstance(value, dict) and not isinstance(value, TextMap)),
    "L": lambda value: isinstance(value, list),
    "A": lambda _: True,
}


def _fail(text: str) -> None:
    raise TemplateError(f"its template fails: {text}")


_LISTS: Final[Mapping[str, tuple[str, Callable[..., Any]]]] = {
    "first": ("L", lambda values: values[0] if values else None),
    "last": ("L", lambda values: values[-1] if values else None),
    "rest": ("L", lambda values: values[1:]),
    "initial": ("L", lambda values: values[:-1]),
    "reverse": ("L", lambda values: values[::-1]),
    "compact": ("L", lambda values: [value for value in values if not is_empty(value)]),
    "uniq": ("L", list_unique),
    "without": ("LA*", lambda values, *omitted: [value for value in values if not has_value(value, list(omitted))]),
    "has": ("AA", has_value),
    "slice": ("LA*", slice_list),
    "append": ("LA", lambda values, value: [*values, value]),
    "push": ("LA", lambda values, value: [*values, value]),
    "prepend": ("LA", lambda values, value: [value, *values]),
    "chunk": ("IL", chunk_list),
    "toJson": ("A", write_json),
    "toPrettyJson": ("A", lambda value: write_json(value, indent=2)),
    "toRawJson": ("A", lambda value: write_json(value, escape=False)),
    "merge": ("D*", merge_maps),
}
"""Functions that have another one with `must` before the name, which does the same."""


FUNCTIONS: Final[Mapping[str, tuple[str, Callable[..., Any]]]] = {
    "and": ("A*", lambda *values: values),
    "or": ("A*", lambda *values: values),
    "not": ("A", is_empty),
    "index": ("AA*", index_value),
    "len": ("A", measure_length),
    "eq": ("AA*", equals_any),
    "ne": ("AA", lambda left, right: not compare_values(left, right)),
    "lt": ("AA", is_less),
    "gt": ("AA", lambda left, right: is_less(right, left)),
    "le": ("AA", lambda left, right: not is_less(right, left)),
    "ge": ("AA", lambda left, right: not is_less(left, right)),
    "print": ("A*", print_all),
    "printf": ("SA*", format_text),
    **_LISTS,
    **{f"must{name[0].upper()}{name[1:]}": entry for name, entry in _LISTS.items()},
    "hello": ("", lambda: "Hello!"),
    "lower": ("S", to_lower),
    "upper": ("S", to_upper),
    "title": ("S", title_words),
    "untitle": ("S", untitle_words),
    "trim": ("S", lambda text: text.strip(BLANKS)),
    "trunc": ("IS", truncate_text),
    "substr": ("IIS", substring),
    "repeat": ("IS", repeat_text),
    "nospace": ("S", lambda text: "".join(text.split())),
    "trimPrefix": ("SS", lambda prefix, text: text.removeprefix(prefix)),
    "trimSuffix": ("SS", lambda suffix, text: text.removesuffix(suffix)),
    "trimAll": ("SS", lambda characters, text: text.strip(characters) if characters else text),
    "trimall": ("SS", lambda characters, text: text.strip(characters) if characters else text),
    "hasPrefix": ("SS", lambda prefix, text: text.startswith(prefix)),
    "hasSuffix": ("SS", lambda suffix, text: text.endswith(suffix)),
    "contains": ("SS", lambda part, text: part in text),
    "replace": ("SSS", replace_text),
    "indent": ("IS", indent_text),
    "nindent": ("IS", lambda spaces, text: "\n" + indent_text(spaces, text)),
    "plural": ("SSI", lambda one, many, count: one if count == 1 else many),
    "quote": ("A*", lambda *values: " ".join(quote_text(print_value(value)) for value in values if value is not None)),
    "squote": ("A*", lambda *values: " ".join(f"'{print_value(value)}'" for value in values if value is not None)),
    "cat": ("A*", lambda *values: " ".join(print_value(value) for value in values if value is not None)),
    "toString": ("A", print_value),
    "toStrings": ("A", list_texts),
    "split": ("SS", split_text),
    "splitn": ("SIS", lambda separator, count, text: split_text(separator, text, count)),
    "splitList": ("SS", lambda separator, text: text.split(separator) if separator else list(text)),
    "join": ("SA", join_texts),
    "sortAlpha": ("A", sort_texts),
    "sha1sum": ("S", make_hash("sha1")),
    "sha256sum": ("S", make_hash("sha256")),
    "sha512sum": ("S", make_hash("sha512")),
    "adler32sum": ("S", lambda text: str(zlib.adler32(text.encode("utf-8", "surrogatepass")))),
    "b64enc": ("S", lambda text: base64.b64encode(text.encode()).decode()),
    "b64dec": ("S", make_decoder(lambda data: base64.b64decode(data, validate=True))),
    "b32enc": ("S", lambda text: base64.b32encode(text.encode()).decode()),
    "b32dec": ("S", make_decoder(base64.b32decode)),
    "atoi": ("S", lambda text: Integer(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else Integer(0)),
    "int": ("A", lambda value: wrap_integer(to_integer(value))),
    "int64": ("A", lambda value: wrap_integer(to_integer(value))),
    "float64": ("A", to_float),
    "add1": ("A", lambda value: wrap_integer(to_integer(value) + 1)),
    "add": ("A*", lambda *values: wrap_integer(sum(map(to_integer, values)))),
    "sub": ("AA", lambda left, right: wrap_integer(to_integer(left) - to_integer(right))),
    "mul": ("AA*", multiply),
    "div": ("AA", divide),
    "mod": ("AA", lambda left, right: wrap_integer(to_integer(left) - to_integer(right) * divide(left, right))),
    "max": ("AA*", lambda *values: Integer(max(map(to_integer, values)))),
    "biggest": ("AA*", lambda *values: Integer(max(map(to_integer, values)))),
    "min": ("AA*", lambda *values: Integer(min(map(to_integer, values)))),
    "ceil": ("A", lambda value: float(-(-to_float(value) // 1))),
    "floor": ("A", lambda value: float(to_float(value) // 1)),
    "seq": ("I*", write_sequence),
    "until": ("I", lambda stop: count_numbers(0, stop, 1 if stop >= 0 else -1)),
    "untilStep": ("III", count_numbers),
    "default": ("AA*", lambda other, *values: other if not values or is_empty(values[0]) else values[0]),
    "empty": ("A", is_empty),
    "coalesce": ("A*", lambda *values: next((value for value in values if not is_empty(value)), None)),
    "all": ("A*", lambda *values: not any(map(is_empty, values))),
    "any": ("A*", lambda *values: not all(map(is_empty, values))),
    "ternary": ("AAB", lambda yes, no, choice: yes if choice else no),
    "kindOf": ("A", name_kind),
    "kindIs": ("SA", lambda name, value: name_kind(value) == name),
    "fail": ("S", _fail),
    "list": ("A*", lambda *values: list(values)),
    "tuple": ("A*", lambda *values: list(values)),
    "concat": ("L*", lambda *lists: [value for values in lists for value in values]),
    "dict": ("A*", make_dict),
    "get": ("DS", lambda found, name: (found or {}).get(name, "")),
    "set": ("DSA", change_map),
    "unset": ("DS", remove_key),
    "hasKey": ("DS", lambda found, name: name in (found or {})),
    "pluck": ("SD*", lambda name, *maps: [found[name] for found in maps if found and name in found]),
    "pick": ("DS*", lambda found, *names: OwnMap({name: found[name] for name in names if found and name in found})),
    "omit": ("DS*", lambda found, *names: OwnMap({name: value for name, value in (found or {}).items() if name not in names})),
    "dig": ("AAA*", dig_value),
    "fromJson": ("S", read_json),
    "mustFromJson": ("S", read_json_or_fail),
    "toYaml": ("A", lambda value: write_yaml(convert_value(value))),
    "fromYaml": ("S", lambda text: read_yaml(text, dict)),
    "fromYamlArray": ("S", lambda text: read_yaml(text, list)),
    "base": ("S", get_base_name),
    "dir": ("S", lambda path: clean_path(posixpath.split(path)[0] or ("/" if path.startswith("/") else "."))),
    "clean": ("S", clean_path),
    "ext": ("S", get_extension),
    "isAbs": ("S", lambda path: path.startswith("/")),
    "normalize": ("S", normalize_name),
    "slugify": ("A*", slugify),
}
"""The functions that gitsched evaluates, by name, each with the types of its arguments."""


UNREAD_FUNCTIONS: Final = frozenset(
    (
        *("call", "html", "js", "println", "urlquery"),
        *("ago", "date", "date_in_zone", "date_modify", "dateInZone", "dateModify", "duration", "durationRound", "htmlDate"),
        *("htmlDateInZone", "must_date_modify", "mustDateModify", "mustToDate", "now", "toDate", "unixEpoch"),
        *("abbrev", "abbrevboth", "initials", "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "swapcase", "shuffle"),
        *(
            "snakecase",
            "camelcase",
            "kebabcase",
            "wrap",
            "wrapWith",
            "toDecimal",
            "randInt",
            "add1f",
            "addf",
            "subf",
            "divf",
            "mulf",
        ),
        *("maxf", "minf", "round", "deepCopy", "mustDeepCopy", "typeOf", "typeIs", "typeIsLike", "deepEqual"),
        *("osBase", "osClean", "osDir", "osExt", "osIsAbs", "keys", "mergeOverwrite", "mustMergeOverwrite", "values"),
        *("bcrypt", "htpasswd", "genPrivateKey", "derivePassword", "buildCustomCert", "genCA", "genCAWithKey", "genSelfSignedCert"),
        *("genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "encryptAES", "decryptAES", "randBytes", "uuidv4"),
        *("semver", "semverCompare", "urlParse", "urlJoin", "regexMatch", "mustRegexMatch", "regexFindAll", "mustRegexFindAll"),
        *("regexFind", "mustRegexFind", "regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral"),
        *("mustRegexReplaceAllLiteral", "regexSplit", "mustRegexSplit", "regexQuoteMeta"),
    )
)
"""Functions of Argo CD that gitsched does not evaluate."""
