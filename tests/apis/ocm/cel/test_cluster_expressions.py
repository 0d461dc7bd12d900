"""CEL expressions of predicates: results, errors of the parser and type checker, and the cost limit."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from gitsched.apis.ocm.cel import cluster_expressions
from gitsched.apis.ocm.cel.cluster_expressions import ClusterExpression, ExpressionCompiler
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.model.document import Key
from gitsched.schedule.fleet import Candidate, Fleet
from tests.tables import each_row

CLUSTER: dict[str, Any] = {
    "apiVersion": "cluster.open-cluster-management.io/v1",
    "kind": "ManagedCluster",
    "metadata": {"name": "dub", "annotations": {}, "finalizers": [], "labels": {"env": "prod", "version": "1.30.4", "count": "12"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSelect"}]},
    "status": {
        "allocatable": {"cpu": 4, "memory": "16Gi"},
        "clusterClaims": [{"name": "region", "value": "eu-west-1"}, {"name": "json", "value": '{"zones": ["a", "b"], "n": 3}'}],
    },
}
SCORES = {"default": [{"name": "cpu", "value": 42}]}

PLACEMENT = Key("cluster.open-cluster-management.io", "Placement", "shop", "web")


def compile_one(text: str) -> ClusterExpression | InvalidExpression:
    found = ExpressionCompiler((CLUSTER,), lambda cluster, resource: SCORES.get(resource)).compile(
        (text,), Key("", "Placement", "shop", "web")
    )
    return found if isinstance(found, InvalidExpression) else found[0]


def matches(text: str) -> bool:
    expression = compile_one(text)
    assert isinstance(expression, ClusterExpression), str(expression)
    return bool(expression.mask(Fleet([Candidate("dub", {}, {})]), 1))


MATCHING = """
managedCluster.metadata.labels.env == "prod"
managedCluster.metadata.labels["env"] in ["prod", "stage"]
"env" in managedCluster.metadata.labels
!("tier" in managedCluster.metadata.labels)
has(managedCluster.metadata.labels.env) && !has(managedCluster.metadata.labels.tier)
managedCluster.metadata.?labels.?tier.orValue("none") == "none"
managedCluster.metadata.labels[?"env"].hasValue()
managedCluster.metadata.name.startsWith("d") || managedCluster.nothing.at.all
managedCluster.nothing.at.all || managedCluster.metadata.name.startsWith("d")
managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value.contains("west"))
managedCluster.status.clusterClaims.exists(c, c.absent == 1 || c.name == "json")
managedCluster.status.clusterClaims.all(c, size(c.name) > 3)
managedCluster.status.clusterClaims.exists_one(c, c.name == "region")
managedCluster.status.clusterClaims.filter(c, c.name == "region").map(c, c.value) == ["eu-west-1"]
managedCluster.status.clusterClaims.map(c, c.name == "region", c.value)[0] == "eu-west-1"
managedCluster.status.clusterClaims.filter(c, c.name == "json")[0].value.parseJSON().zones.size() == 2
managedCluster.status.clusterClaims.filter(c, c.name == "json")[0].value.parseJSON().n + 1.0 == 4.0
managedCluster.spec.hubAcceptsClient == false
managedCluster.spec.taints.all(t, t.effect == "NoSelect")
managedCluster.spec.taints[0].timeAdded == null
managedCluster.scores("default").exists(s, s.name == "cpu" && s.value > 40)
quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("3500m"))
quantity(managedCluster.status.allocatable["memory"]).compareTo(quantity("16384Mi")) == 0
quantity("2").add(quantity("500m")).sub(1).asApproximateFloat() == 1.5
isQuantity("1.5Gi") && !isQuantity("many")
semver(managedCluster.metadata.labels["version"]).isGreaterThan(semver("1.29.9"))
semver("1.30.0-rc.1").isLessThan(semver("1.30.0")) && !isSemver("v1.30.0")
managedCluster.metadata.labels.version.matches("^1[.](30|31)[.][0-9]+$")
int(managedCluster.metadata.labels.count) > 11
managedCluster.metadata.labels.exists(k, k.startsWith("v"))
[3, 1, 2].max() == 3 && [1, 2, 3].isSorted() && [1, 2, 3].sum() == 6 && ["a", "b"].indexOf("b") == 1
"a,b,,c".split(",") == ["a", "b", "", "c"] && ["a", "b"].join("-") == "a-b"
"Hello".lowerAscii() == "hello" && "abc".substring(1, 2) == "b" && "x".replace("x", "y") == "y" && " a ".trim() == "a"
"%s has %d of %.1f".format(["it", 3, 4.25]) == "it has 3 of 4.2"
"a1b22".findAll("[0-9]+") == ["1", "22"] && "a1b22".find("[0-9]+") == "1"
url("https://dub.example.com:6443/a?b=c").getHostname() == "dub.example.com" && isURL("https://x") && !isURL("x y")
url("https://dub.example.com:6443/a?b=c").getPort() == "6443" && url("https://x/a?b=c").getQuery()["b"][0] == "c"
cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsCIDR("11.0.0.0/16") && ip("::1").isLoopback()
ip.isCanonical("::1") && !ip.isCanonical("0:0::1") && ip("10.0.0.1").family() == 4
!format.dns1123Label().validate("dub").hasValue() && format.named("uuid").value().validate("x").hasValue()
timestamp("2026-03-01T08:00:00Z") + duration("1h30m") == timestamp("2026-03-01T09:30:00Z")
duration("1.5h") + duration(".5h") == duration("120.m") && duration("-1h2s") < duration("0")
timestamp("2026-03-01T08:00:00Z").getDayOfWeek() == 0 && timestamp("2026-03-01T23:30:00Z").getHours("+01:00") == 0
type(1) == int && type("") == string && type([]) == list && type(1.5) == double
dyn(1) < 1.5 && dyn(2) >= 2.0 && dyn(1) == 1.0
[1, 2].exists(x, x > 1.5)
managedCluster.metadata.labels.`env` == "prod" && managedCluster.`kind` == "ManagedCluster"
!has(managedCluster.metadata.annotations) && !has(managedCluster.metadata.finalizers) && has(managedCluster.status.conditions)
sign(quantity("-1")) == -1 && size(managedCluster) > 3
[1, "a"].exists(x, x == 1) && [] == [1].filter(x, x > 1)
"%d of %s".format([1000000.0, {"b": [1, null], "a": true}]) == "1000000 of {a: true, b: [1, null]}"
7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1
{"a": 1, "b": [2]}.b[0] == 2 && {"a": 1} == {"a": 1}
optional.of(1).optMap(x, x + 1).value() == 2 && optional.none().or(optional.of(3)).value() == 3
"\\u00e9" == "é" && r"\\d" == "\\\\d" && '''it's''' == "it's"
0x1F == 31 && 1u + 2u == 3u && string(1e6) == "1e+06" && string(1.0) == "1"
(true ? 1 : 2) == 1 && (managedCluster.metadata.name == "x" ? false : true)
-9223372036854775808 < 0
""".strip().splitlines()

NOT_MATCHING = """
managedCluster.metadata.labels.tier == "gold"
managedCluster.metadata.labels["env"] == 1
managedCluster.scores("nothing").size() == 0
managedCluster.metadata.name
managedCluster.metadata.labels.env > 3
quantity(managedCluster.metadata.name).isInteger()
managedCluster.metadata.labels.count / 2 == 6
9223372036854775807 + size(managedCluster.metadata.name) > 0
1 / (size(managedCluster.metadata.name) - 3) == 1
[1, 2][size(managedCluster.metadata.name)] == 1
managedCluster.metadata.name.matches("[")
managedCluster.status.clusterClaims.all(c, c.absent)
""".strip().splitlines()

INVALID = {
    "cluster.metadata.name == 'c1'": "undeclared reference to 'cluster' at character 1",
    "managedCluster.metadata.name.shout()": "the function shout() at character 29 is not supported",
    "sets.contains([1], [1])": "undeclared reference to 'sets'",
    "1 < 1.5": "no matching overload for < with int and double at character 3",
    "1 in [1.0]": "no matching overload for in with int and list(double) at character 3",
    "{1: 'a'}[1.0] == 'a'": "cannot be indexed with double",
    "[1, 2].exists(x, x == 'a')": "no matching overload for == with int and string",
    "[1, 2].map(x, x).indexOf('a') == 0": "no matching overload for indexOf(list(int), string)",
    "[['a']].max() == ['a']": "no matching overload for max(list(list(string)))",
    "optional.of(1).orValue('a') == 1": "no matching overload for orValue(optional(int), string)",
    "'a,b'.split(',').exists(x, x == 1)": "no matching overload for == with string and int",
    "[1].existsOne(x, x == 1)": "is not supported",
    "semver('v1.2', true).major() == 1": "no matching overload for semver(string, bool)",
    "managedCluster.metadata.labels.in == 'x'": "is a reserved word; as a field name, write it in backquotes",
    "size()": "no matching overload for size()",
    "'a'.startsWith(1)": "no matching overload for startsWith(string, int)",
    "1 + 'a'": "no matching overload for + with int and string at character 3",
    "1 == 'a'": "no matching overload for == with int and string at character 3",
    "true && 1": "expected bool at character 6, got int",
    "1 ? 2 : 3": "expected bool at character 3, got int",
    "managedCluster.": "unexpected end of the expression",
    "managedCluster..name": "unexpected",
    "'open": "is not terminated",
    "1 2": "unexpected",
    "has(managedCluster)": "requires one field selection",
    "[1].all(1, true)": "must be an identifier",
    "if == 1": "reserved word",
    "99999999999999999999": "too large",
    "'\\q'": "an invalid escape sequence",
    "#": "unexpected '#'",
}


@each_row("text", MATCHING)
def test_an_expression_matches(text: str) -> None:
    assert matches(text)


@each_row("text", NOT_MATCHING)
def test_errors_and_values_other_than_true_do_not_match(text: str) -> None:
    assert not matches(text)


@each_row("text", INVALID)
def test_invalid_expressions_are_rejected_with_their_location(text: str) -> None:
    found = compile_one(text)
    assert isinstance(found, InvalidExpression)
    assert INVALID[text] in str(found)


def test_unsupported_functions_have_their_own_finding_code() -> None:
    found = compile_one("managedCluster.metadata.name.shout()")
    assert isinstance(found, InvalidExpression)
    assert found.code == "cel-unsupported"


@pytest.mark.parametrize("text", ["(" * 100 + "1" + ")" * 100, "a" * 5000, "+".join(["1"] * 300), "!" * 200 + "true"])
def test_expressions_that_are_too_large_are_rejected(text: str) -> None:
    found = compile_one(text)
    assert isinstance(found, InvalidExpression)
    assert found.code == "cel-cost"


@pytest.mark.parametrize(
    "text",
    [
        "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d,"
        " [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))",
    ],
)
def test_an_expression_above_the_cost_limit_does_not_match(text: str) -> None:
    expression = compile_one(text)
    assert isinstance(expression, ClusterExpression)
    assert not expression.mask(Fleet([Candidate("dub", {}, {})]), 1)
    assert expression.exceeded_limit


EXPENSIVE = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a + b + c + {number} >= 0)))"


def test_all_placements_of_a_run_share_a_budget_and_each_has_a_part_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ASSURED_COST", 1_000), ("ASSURED_COST_PER_CLUSTER", 0), ("PLACEMENT_LIMIT", 30_000)):
        monkeypatch.setattr(cluster_expressions, name, value)
    monkeypatch.setattr(cluster_expressions.SharedBudget.__init__, "__defaults__", (50_000,))
    names = [f"c{number}" for number in range(20)]
    fleet = Fleet([Candidate(name, {}, {}) for name in names])
    compiler = ExpressionCompiler(tuple({**CLUSTER, "metadata": {"name": name}} for name in names), lambda *_: None)
    matching, texts = [], []
    for number in range(20):
        text = EXPENSIVE.replace("{number}", str(number)) if number < 19 else "managedCluster.metadata.name == 'c7'"
        compiled = compiler.compile((text,), Key("", "Placement", "shop", f"p{number}"))
        assert not isinstance(compiled, InvalidExpression)
        matching.append(compiled[0].mask(fleet, (1 << 20) - 1).bit_count())
        texts.append(text)
    assert 0 < matching[0] < 20, "the limit of a Placement"
    assert matching[10] == 0, "the limit of the run"
    assert matching[-1] == 1, "a cheap expression is not affected"
    assert compiler.list_exceeding(texts) == [text if len(text) <= 100 else f"{text[:100]}..." for text in texts[:-1]]


def test_nested_loops_of_ten_placements_take_no_more_time_than_a_run_may() -> None:
    names = [f"c{number}" for number in range(20)]
    fleet = Fleet([Candidate(name, {}, {}) for name in names])
    compiler = ExpressionCompiler(tuple({**CLUSTER, "metadata": {"name": name}} for name in names), lambda *_: None)
    loops = "".join(f"{list(range(20))}.all({name}, " for name in "abcde")
    start = process_time()
    for number in range(10):
        compiled = compiler.compile((f"{loops}a + b + c + d + e >= -{number})))))",), Key("", "Placement", "shop", f"p{number}"))
        assert not isinstance(compiled, InvalidExpression)
        assert not compiled[0].mask(fleet, (1 << 20) - 1)
        assert compiled[0].exceeded_limit
    assert process_time() - start < 3


SHARED = "[1]" + f".map(a, [{', '.join(['a'] * 20)}])" * 12
"""A list that has another one twenty times as element, and so on: 20**12 elements in all, with the cost of a few."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{SHARED} == {SHARED}", id="equality"),
        pytest.param(f"{SHARED} in [{SHARED}]", id="membership"),
        pytest.param(f"'%s'.format([{SHARED}]) != ''", id="format"),
        pytest.param("['" + "a" * 1000 + "']" + ".map(a, a + a)" * 30 + " != []", id="doubled string"),
        pytest.param(f"{['a'] * 100}.map(a, {['b'] * 100}.join('{'c' * 900}')).join('{'d' * 900}') != ''", id="join"),
    ],
)
def test_values_that_grow_exponentially_exceed_a_limit(text: str) -> None:
    expression = compile_one(text)
    assert isinstance(expression, ClusterExpression)
    start = process_time()
    assert not expression.mask(Fleet([Candidate("dub", {}, {})]), 1)
    assert process_time() - start < 3
