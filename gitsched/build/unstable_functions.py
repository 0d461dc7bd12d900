"""The functions of Helm's templates whose results do not follow from their arguments, and templates that return other results for them.

Source: sprig v3.3.0, and helm v4, which removes `env` and `expandenv` and lets `getHostByName` return "". What other functions return
follows from their arguments: `range`, `toYaml` and the like sort the keys of a dict.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.build.template_scanner import PREFIX
from gitsched.named_tuples import NamedTuple

LOOKUP = b"lookup"
"""Asks the cluster, which helm does not have here: the result is empty."""


class UnstableFunction(NamedTuple):
    """A function, and a template that returns another result in place of it.

    `body` are the actions of the template, one a line: they set `$r` to the result for the outcome `$outcome`, from the arguments `$a`;
    `$l` is an empty list. `outcomes` is how many of them show whether the result matters: one if helm never returns that, two if they
    differ in every part, or three orders of a list, of which the second reverses all pairs and the third moves all entries. `cure` says why
    the result is not always the same, and what to do.
    """

    body: str
    outcomes: int
    cure: str


_MADE_UP = "it makes up a value: set that value, or keep it elsewhere"
_SORT_KEYS = "the keys of a dict have no order: sort them, as `keys $dict | sortAlpha` does"
_SORT_VALUES = "the values of a dict have no order: use `range` on the dict, which takes them in the order of their keys"
_CLOCK = "it depends on the time of the run: set the text that it returns in a value"
_NO_TIME = 'what is no time stands for that of the run: give it a time, as with `toDate "2006-01-02" $day`'
_IN_ZONE = f"{_NO_TIME}, and the zone UTC, because others differ between machines"

_REORDER = """
if eq $outcome 1
$l = reverse $l
else if and (eq $outcome 2) $l
$l = append (rest $l) (first $l)
end
"""
_TIME = '(toDate "2006-01-02 15:04:05" (ternary "2001-02-03 04:05:06" "1999-11-22 16:17:18" (eq $outcome 0)))'


def _choose(first: str, second: str) -> str:
    return f"$r = ternary {first} {second} (eq $outcome 0)"


def _repeat(first: str, second: str) -> str:
    return f'$r = repeat (int (first $a)) (ternary "{first}" "{second}" (eq $outcome 0))'


def _format(layout: str, time: str, zone: str) -> str:
    """Return the actions that format a time. What is no time, or in another zone than UTC, is a time of the outcome."""
    return f"""
$time := {time}
if not (has (typeOf $time) (list "time.Time" "*time.Time" "int64" "int" "int32"))
$time = {_TIME}
end
if not (has {zone} (list "UTC" "Local" ""))
$time = {_TIME}
end
$r = dateInZone {layout} $time "UTC"
"""


def _measure(name: str, types: str) -> str:
    """Return the actions for a function that returns how long ago a time of one of these types is, and something else for others."""
    return f"""
if has (typeOf (first $a)) (list {types})
{_choose('"1s"', '"2h"')}
else
$r = {name} (first $a)
end
"""


_KEY_PAIR = """
$text := printf "-----BEGIN NONE-----\\n%s\\n-----END NONE-----\\n" (ternary "_" "~" (eq $outcome 0))
$r = dict "Cert" $text "Key" $text
"""

FUNCTIONS: Mapping[bytes, UnstableFunction] = {
    b"keys": UnstableFunction(
        f"range $a\nrange sortAlpha (. | keys)\n$l = append $l .\nend\nend\n{_REORDER}\n$r = $l", 3, _SORT_KEYS
    ),
    b"values": UnstableFunction(f"range $_, $value := first $a\n$l = append $l $value\nend\n{_REORDER}\n$r = $l", 3, _SORT_VALUES),
    b"shuffle": UnstableFunction(f'$l = splitList "" (first $a)\n{_REORDER}\n$r = join "" $l', 3, _MADE_UP),
    b"now": UnstableFunction(f"$r = {_TIME}", 2, "it is the time of the run: set a time in a value"),
    b"ago": UnstableFunction(_measure("ago", '"time.Time" "int64" "int"'), 2, _CLOCK),
    b"durationRound": UnstableFunction(_measure("durationRound", '"time.Time"'), 2, _CLOCK),
    b"date": UnstableFunction(_format("(index $a 0)", "(index $a 1)", '"Local"'), 2, _NO_TIME),
    b"htmlDate": UnstableFunction(_format('"2006-01-02"', "(index $a 0)", '"Local"'), 2, _NO_TIME),
    b"dateInZone": UnstableFunction(_format("(index $a 0)", "(index $a 1)", "(index $a 2)"), 2, _IN_ZONE),
    b"date_in_zone": UnstableFunction(_format("(index $a 0)", "(index $a 1)", "(index $a 2)"), 2, _IN_ZONE),
    b"htmlDateInZone": UnstableFunction(_format('"2006-01-02"', "(index $a 0)", "(index $a 1)"), 2, _IN_ZONE),
    b"randAlphaNum": UnstableFunction(_repeat("_", "~"), 1, _MADE_UP),
    b"randAlpha": UnstableFunction(_repeat("_", "~"), 1, _MADE_UP),
    b"randAscii": UnstableFunction(_repeat("a", "b"), 2, _MADE_UP),
    b"randNumeric": UnstableFunction(_repeat("1", "2"), 2, _MADE_UP),
    b"randBytes": UnstableFunction(f"{_repeat('a', 'b')}\n$r = b64enc $r", 2, _MADE_UP),
    b"randInt": UnstableFunction(f"{_choose('(index $a 0)', '(sub (index $a 1) 1)')}\n$r = int $r", 2, _MADE_UP),
    b"uuidv4": UnstableFunction(
        _choose('"00000000-0000-0000-0000-000000000000"', '"00000000-0000-0000-0000-000000000001"'), 1, _MADE_UP
    ),
    b"bcrypt": UnstableFunction(_choose('"$2a$10$_"', '"$2a$10$~"'), 1, _MADE_UP),
    b"htpasswd": UnstableFunction(  # the SHA of newer versions has no salt
        f"""
{_choose('(printf "%s:_" (first $a))', '(printf "%s:~" (first $a))')}
if and (eq (len $a) 3) (eq (toString (last $a)) "sha")
$r = first $a
end
""",
        1,
        _MADE_UP,
    ),
    b"encryptAES": UnstableFunction(_choose('"_"', '"~"'), 1, _MADE_UP),
    b"genPrivateKey": UnstableFunction(f"{_KEY_PAIR}\n$r = $text", 1, _MADE_UP),
    b"genCA": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    b"genCAWithKey": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    b"genSelfSignedCert": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    b"genSelfSignedCertWithKey": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    b"genSignedCert": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    b"genSignedCertWithKey": UnstableFunction(_KEY_PAIR, 1, _MADE_UP),
    LOOKUP: UnstableFunction(
        f"""
$r = dict
if eq (include "{PREFIX}found" .) "true"
$r = dict "apiVersion" (index $a 0) "kind" (index $a 1) "metadata" (dict "namespace" (index $a 2) "name" (index $a 3))
end
""",
        0,
        "it finds nothing here: the chart is rendered as for a cluster without these objects",
    ),
}


def write_definitions(outcome: int, found: bool, limit: int) -> bytes:
    """Return a file with the templates that `replace_calls` includes. Calls with a number below the limit have the outcome, and LOOKUP
    finds something if `found`; others have outcome 0, and LOOKUP finds nothing."""
    parts = [
        _define("outcome", f"ternary {outcome} 0 (lt (index . 1) {limit})"),
        _define("found", f"and {str(found).lower()} (lt (index . 1) {limit})"),
    ]
    for name, function in FUNCTIONS.items():
        begin = f'$outcome := int (include "{PREFIX}outcome" .)\n$a := slice . 2\n$l := list\n$r := ""'
        parts.append(_define(name.decode(), f'{begin}\n{function.body}\n$_ := set (first .) "r" $r\n"r"'))
    return "".join(parts).encode()


def _define(name: str, actions: str) -> str:
    lines = (f"{{{{- {line} -}}}}" for line in actions.splitlines() if line)
    return f'{{{{- define "{PREFIX}{name}" -}}}}{"".join(lines)}{{{{- end -}}}}\n'
