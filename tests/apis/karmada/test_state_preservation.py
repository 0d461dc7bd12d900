"""JSONPath templates of statePreservation."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.failover.state_preservation import evaluate_jsonpath
from tests.tables import each_row

VALUE = yaml.safe_load("""
job: {id: f00d, done: true, count: 3, share: 0.5, none: null, parts: [a, {b: c}]}
"with.dot": x
"it's": y
""")
TEXTS = """
a member:               ["{.job.id}", f00d]
with blanks:            ["{ .job.id }", f00d]
from the root:          ["{$.job.id}", f00d]
from here:              ["{@.job.id}", f00d]
in brackets:            ["{.job['id']}", f00d]
in double quotes:       ['{["job"]["id"]}', f00d]
a dot in a name:        ['{.with\\.dot}', x]
quoted, with a dot:     ["{['with.dot']}", x]
an escaped quote:       ["{['it\\\\'s']}", y]
an item:                ["{.job.parts[0]}", a]
the last item:          ["{.job.parts[-1].b}", c]
a number:               ["{.job.count}", "3"]
a fraction:             ["{.job.share}", "0.5"]
a truth:                ["{.job.done}", "true"]
an object:              ["{.job.parts[1]}", '{"b":"c"}']
text around:            ["job-{.job.id}-{.job.count}", job-f00d-3]
no braces:              [plain, plain]
nothing:                ["", ""]
"""
FAULTS = """
a member that is not there:  ["{.job.ID}", "no member 'ID'"]
a member of no object:       ["{.job.id.x}", "no member 'x'"]
an item that is not there:   ["{.job.parts[2]}", "no item 2"]
an item of no list:          ["{.job[0]}", "no item 0"]
a wildcard:                  ["{.job.parts[*]}", is not a path]
a filter:                    ["{.job.parts[?(@.b)]}", is not a path]
a descent:                   ["{..id}", is not a path]
a range:                     ["{range .job.parts}{end}", is not a path]
no end:                      ["{.job", unbalanced braces]
no beginning:                [".job}", unbalanced braces]
far too long:                [long, more than]
"""


@each_row("case", (texts := yaml.safe_load(TEXTS)).values())
def test_evaluate_jsonpath(case: list[str]) -> None:
    template, text = case
    assert evaluate_jsonpath(template, VALUE) == text


@each_row("case", (faults := yaml.safe_load(FAULTS)).values())
def test_a_jsonpath_without_a_value_says_why(case: list[str]) -> None:
    template, why = case
    with pytest.raises(ValueError, match=why):
        evaluate_jsonpath("x" * 5000 if template == "long" else template, VALUE)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=2), v, max_size=2),
)


@given(st.text(alphabet="{}.[]'\"\\$@ab01- *", max_size=30), VALUES)
def test_any_jsonpath_gives_a_text_or_a_reason(template: str, value: Any) -> None:
    try:
        text: str | None = evaluate_jsonpath(template, value)
    except ValueError as error:
        text = str(error) or None
    assert isinstance(text, str)
