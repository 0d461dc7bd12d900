"""Variables are substituted as Flux does it after a build."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.manifests.envsubst import SubstitutionError, VariableValues, substitute_variables
from tests.tables import each_row

VALUES = {
    "HOST": "shop.example.com",
    "path": "/srv/data/eu/file.tar.gz",
    "mixed": "aBcABC",
    "empty": "",
    "umlaut": "äb",
    "price": "1$",
}
EXAMPLES = [
    ("nothing to do, $HOST and $ stay", "nothing to do, $HOST and $ stay"),
    ("a ${HOST} b ${HOST}", "a shop.example.com b shop.example.com"),
    ("$${HOST}", "${HOST}"),
    ("$$${HOST}", "$shop.example.com"),
    ("cost $$5", "cost $5"),
    ("${missing:=x}${missing:-y}${missing=z}${empty:=e}", "xyze"),
    ("${HOST:=x}", "shop.example.com"),
    ("${missing:+a}${HOST:+b}", "ashop.example.com"),
    ("${missing:=a ${HOST} b}", "a shop.example.com b"),
    ("${missing:=}", ""),
    ("${#HOST} ${#umlaut}", "16 3"),
    ("${mixed^} ${mixed^^} ${mixed,} ${mixed,,}", "ABcABC ABCABC aBcABC abcabc"),
    ("${HOST:5} ${HOST:5:7} ${HOST:-3} ${HOST:99}", "example.com example shop.example.com "),
    ("${HOST:0:-1}", None),
    ("${path#*/}|${path##*/}|${path%.*}|${path%%.*}", "srv/data/eu/file.tar.gz|file.tar.gz|/srv/data/eu/file.tar|/srv/data/eu/file"),
    ("${path#/s[a-r]v}|${path#/s[^a-q]v}|${path#/s?v}", "/data/eu/file.tar.gz|/data/eu/file.tar.gz|/data/eu/file.tar.gz"),
    ("${path#nothing}", "/srv/data/eu/file.tar.gz"),
    ("${mixed/BC/x}|${mixed//[a]/x}|${mixed/#a/x}|${mixed/%C/x}", "aBcAx|aBcABC|xBcABC|aBcABx"),
    ("${path//\\//-}", "-srv-data-eu-file.tar.gz"),
    ("${HOST/.example//}", "shop.com"),
    ("${price}", "1$"),
    ("${missing}", None),
    ("${missing^^}", None),
    ("${#missing}", None),
    ("${HOST", None),
    ("${}", None),
    ("${ HOST }", None),
    ("${HOST-x}", None),
    ("${HOST.x}", None),
    ("${HOST#}", None),
    ("${HOST/x}", None),
    ("${missing:=x", None),
]  # fmt: skip


@each_row(("text", "expected"), EXAMPLES)
def test_a_text_is_substituted_as_flux_does_it(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(SubstitutionError):
            substitute_variables(text, VariableValues(VALUES))
    else:
        assert substitute_variables(text, VariableValues(VALUES)) == expected


def test_an_error_names_the_variable_that_has_no_value() -> None:
    with pytest.raises(SubstitutionError) as error:
        substitute_variables("a ${HOST} ${TOKEN}", VariableValues(VALUES))
    assert error.value.variable == "TOKEN"


@pytest.mark.parametrize("values", [VariableValues({}, frozenset({"TOKEN"})), VariableValues({}, incomplete=True)])
def test_a_default_does_not_count_for_a_variable_that_may_be_set_elsewhere(values: VariableValues) -> None:
    with pytest.raises(SubstitutionError):
        substitute_variables("${TOKEN:=none}", values)


@pytest.mark.parametrize(
    "text", ["${a:=" * 60 + "}" * 60, "${long//a/${long}}", "${long##*a*a*a*a*a*b}"], ids=["nested", "multiplied", "pattern"]
)
def test_hostile_text_is_an_error_in_bounded_time(text: str) -> None:
    with pytest.raises(SubstitutionError):
        substitute_variables(text, VariableValues({"long": "a" * 10_000}))


@given(st.text(alphabet="ab$ {}:=/#%^\\-}"))
def test_any_text_is_substituted_or_an_error(text: str) -> None:
    try:
        result = substitute_variables(text, VariableValues({"a": "1", "b": ""}))
    except SubstitutionError:
        return
    if "$" not in text:
        assert result == text
