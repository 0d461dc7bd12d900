"""An override edits the text of a manifest where it changes it: comments, order, indentation and quotes elsewhere stay."""

from __future__ import annotations

import json
from random import Random
from textwrap import dedent
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from gitsched.apis.karmada.overrides.json_patch import PatchedObject
from gitsched.apis.karmada.overrides.overriders import apply_overriders
from gitsched.edits.document_editor import DocumentEditor
from gitsched.edits.manifest_edits import ManifestText, edit_manifest, read_manifest, set_namespace
from gitsched.edits.scalar_search import list_scalar_edits
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.parser import parse_file
from gitsched.manifests.yaml_composer import YamlDocument, compose_documents
from gitsched.model.document import Body, Origin, remove_server_owned
from gitsched.model.json_values import is_same_json
from gitsched.model.planned_files import PatchedBlob
from gitsched.render.yaml import dump
from tests.edits.random_documents import Writer, change_value, make_manifest
from tests.tables import each_row

HEAD = """\
# The front of the shop.
kind: Deployment   # kind first, on purpose
apiVersion: apps/v1
metadata:
    name: web
"""


def edit(text: str, overriders: Body, number: int = 0) -> ManifestText:
    """Return the manifest of a file's document with these overriders; its value is what they make of the document."""
    parsed = parse_file(text.encode(), path="web.yaml", validate=None).documents[number]
    origin = Origin("web.yaml", "b" * 40, parsed.index, parsed.item, parsed.line, parsed.column, parsed.spans)
    patched = PatchedObject(parsed.body)
    apply_overriders(patched, overriders)
    found = edit_manifest(text, PatchedBlob(origin, parsed.body, remove_server_owned(patched.root)))
    assert is_same_json(read(found.file.data), remove_server_owned(patched.root))
    return found


def read(data: bytes) -> Body:
    (document,) = parse_file(data, path="web.yaml", validate=None).documents
    return document.body


def patch(*operations: tuple[Any, ...]) -> Body:
    """Return a plaintext overrider of (operator, path, value) each."""
    return {"plaintext": [dict(zip(("operator", "path", "value"), operation, strict=False)) for operation in operations]}


def image(component: str, value: str) -> Body:
    return {"imageOverrider": [{"component": component, "operator": "replace", "value": value}]}


CASES: dict[str, tuple[Body, str]] = {
    "an image": (
        image("Tag", "1.28"),
        """\
        spec:
          template:
            spec:
                containers:   # one
                - name: web
        -         image: nginx:1.27   # renovate: nginx
        +         image: nginx:1.28   # renovate: nginx
                  args: [a]
        """,
    ),
    "an image in quotes": (
        image("Registry", "mirror.example.com"),
        """\
        spec:
          template:
            spec:
              containers:
        -       - {name: a, image: 'nginx'}
        +       - {name: a, image: 'mirror.example.com/nginx'}
        -       - image: "nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000"
        +       - image: "mirror.example.com/nginx@sha256:0000000000000000000000000000000000000000000000000000000000000000"
        """,
    ),
    "arguments": (
        {
            "argsOverrider": [{"containerName": "web", "operator": "add", "value": ["--verbose", "yes"]}],
            "commandOverrider": [{"containerName": "web", "operator": "remove", "value": ["sh"]}],
        },
        """\
        spec:
          template:
            spec:
              containers:
                - name: web
                  args:
                    # first
                    - serve  # it
        +           - "--verbose"
        +           - "yes"
        -         command: ["sh", "-c"]
        +         command: ["-c"]
        """,
    ),
    "labels and annotations": (
        {
            "labelsOverrider": [{"operator": "add", "value": {"team": "shop"}}, {"operator": "remove", "value": {"app": "web"}}],
            "annotationsOverrider": [{"operator": "add", "value": {"a/b": "1", "c": "x\ny\n"}}],
        },
        """\
            labels:
              # who
        -     app: web  # it
              tier: front
              # later
        +     team: shop
        +   annotations:
        +     a/b: "1"
        +     c: |
        +       x
        +       y
        spec: {}
        """,
    ),
    "the only label": (
        {"labelsOverrider": [{"operator": "remove", "value": {"app": "web"}}]},
        """\
        -   labels:  # who
        -     app: web
        +   labels: {}  # who
        spec: {}
        """,
    ),
    "an environment variable": (
        patch(
            ("add", "/spec/template/spec/containers/0/env/-", {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}),
            ("remove", "/spec/template/spec/containers/0/env/1"),
        ),
        """\
        spec:
          template:
            spec:
              containers:
              - env:
                - name: A
                  value: |
                    several
                    lines
                # gone
        -       - name: gone
        -         value: 'x'  # why
                # kept
                - name: kept
                  value: on
        +       - name: B
        +         valueFrom:
        +           fieldRef:
        +             fieldPath: x
                image: web
        """,
    ),
    "a text of several lines": (
        patch(("replace", "/data/script", "set -e\nrun --fast\n"), ("replace", "/data/other", 3)),
        """\
        data:
            script: |  # bash
                set -e
        -       run
        +       run --fast
        -   other:
        -     - a
        +   other: 3
            last: x
        """,
    ),
    "other kinds of values": (
        patch(
            ("replace", "/spec/scalar", {"a": [1]}),
            ("replace", "/spec/mapping", [True]),
            ("replace", "/spec/nothing", {"b": None}),
            ("add", "/spec/empty/0", "x"),
        ),
        """\
        spec:
        -     scalar: 1  # one
        +     scalar:  # one
        +         a:
        +           - 1
              mapping:  # two
        -       a: 1
        +       - true
              nothing:
        +         b: null
        -     empty: []
        +     empty:
        +       - x
              list:
                - z
        """,
    ),
    "flow collections on several lines": (
        patch(("add", "/spec/a/new", {"x": "y: z"}), ("add", "/spec/list/1", "two"), ("remove", "/spec/a/old")),
        """\
        spec: {
          a: {
        -   old: 1,
        -   b: 2, # two
        +   b: 2,
        +   new: {x: "y: z"}, # two
          },
        - list: [one, three],
        + list: [one, two, three],
        }
        """,
    ),
    "anchors elsewhere": (
        patch(("replace", "/spec/b", 2), ("add", "/spec/merged/new", "x"), ("replace", "/spec/merged/own", 5)),
        """\
        spec:
          a: &shared {x: 1}
        - b: 1
        + b: 2
          c: *shared
          merged:
            <<: *shared
        -   own: 4  # own
        +   own: 5  # own
        +   new: x
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_an_override_changes_only_its_lines(name: str, line_end: str) -> None:
    overriders, marked = CASES[name]
    lines = dedent(marked).splitlines()
    before, after = (
        HEAD + "".join(f"{line.replace(own, ' ', 1) if line.startswith(own) else line}\n" for line in lines if line[0] != other)
        for own, other in (("-", "+"), ("+", "-"))
    )
    found = edit(before.replace("\n", line_end), overriders)
    assert (found.refusal, found.file.data.decode()) == ("", after.replace("\n", line_end))


def test_one_document_of_a_file_is_edited_with_its_byte_order_mark_and_without_a_last_line_end() -> None:
    other = "# other\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
    web = "apiVersion: v1\nkind: ConfigMap  # \U0001f600\nmetadata:\n  name: web"
    added = {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}
    expected = f"{web}\n  labels:\n    a: b\n".encode()
    assert edit(f"\ufeff{other}---\n# é\n{web}", added, 1).file.data == b"# \xc3\xa9\n" + expected
    assert edit(f"\ufeff# é\n---\n{web}", added).file.data == "\ufeff# é\n---\n".encode() + expected


def test_a_manifest_in_json_stays_json() -> None:
    text = '{\n  "apiVersion": "v1",\n  "kind": "ConfigMap",\n  "metadata": {\n    "name": "web"\n  },\n  "data": {"a": "1"}\n}\n'
    found = edit(text, {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}], **patch(("replace", "/data/a", "x\ny"))})
    changed = text.replace('"name": "web"', '"name": "web",\n    "labels": {"a": "b"}').replace('"1"', '"x\\ny"')
    assert (found.refusal, found.file.data.decode()) == ("", changed)


@pytest.mark.parametrize(
    ("spec", "operation", "refusal"),
    [
        ("  a: &x\n    b: 1\n  c: *x\n", ("replace", "/spec/c/b", 2), "an anchor shares the value with other places"),
        ("  a: &x 1\n  c: *x\n", ("replace", "/spec/a", 2), "an anchor shares the value with other places"),
        ("  a: &x {b: 1}\n  c:\n    <<: *x\n    d: 1\n", ("remove", "/spec/c/b"), "`<<` merges the value from another mapping"),
        ("  a: !!str 1\n", ("replace", "/spec/a", "2"), "the value has an anchor or a tag"),
        ("  ? a\n  : 1\n", ("replace", "/spec/a", "2"), "a key is written with `?`, or without a value"),
        ("  # z\n  b: {c}\n", ("replace", "/spec/b/c", 1), "a key is written with `?`, or without a value"),
    ],
)
def test_other_text_is_written_as_new_yaml_with_the_reason(spec: str, operation: tuple[Any, ...], refusal: str) -> None:
    found = edit(f"{HEAD}spec:\n{spec}", patch(operation))
    assert found.refusal == refusal
    assert b"#" not in found.file.data


def test_an_item_of_a_list_is_written_as_new_yaml_with_the_reason() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"
    assert edit(text, {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}).refusal == "the object is an item of a List"


@given(seed=st.integers(0, 2**32), anchors=st.booleans(), line_end=st.sampled_from(["\n", "\n", "\r\n"]))
def test_an_edited_text_has_exactly_the_new_value(seed: int, anchors: bool, line_end: str) -> None:
    random = Random(seed)
    body = make_manifest(random)
    text = Writer(random, anchors=anchors).write(body, line_end)
    documents = parse_file(text.encode(), path="web.yaml", validate=None).documents
    assume(len(documents) == 1)
    before, after = documents[0].body, change_value(random, documents[0].body)
    origin = Origin("web.yaml", "b" * 40, 0, -1, 1, 1, documents[0].spans)
    found = edit_manifest(text, PatchedBlob(origin, before, after))
    assert is_same_json(read(found.file.data), after)
    if not found.refusal:
        edited = found.file.data.decode()
        start, end = find_changed_members(text, before, after)
        assert edited.startswith(text[:start])
        assert edited.endswith(text[end:])


def find_changed_members(text: str, before: Body, after: Body) -> tuple[int, int]:
    """Return the extent of the members that change at the top of a document, with those between them and the comments behind."""
    starts = {key.value: key.start_mark.index for key, _ in yaml.compose(text, yaml.CSafeLoader).value}
    changed = {
        name
        for name in {**before, **after}
        if name not in before or name not in after or not is_same_json(before[name], after[name])
    }
    ends = dict(zip(starts, [*list(starts.values())[1:], len(text)], strict=True))
    if not changed:
        return len(text), len(text)
    last = max((ends[name] if name in starts else len(text) for name in changed), default=len(text))
    return min(starts.get(name, max(starts.values())) for name in changed), last


@given(seed=st.integers(0, 2**32), anchors=st.booleans())
def test_a_scalar_that_is_found_by_its_lines_is_the_one_that_the_parser_finds(seed: int, anchors: bool) -> None:
    random = Random(seed)
    text = Writer(random, anchors=anchors).write(make_manifest(random))
    documents = parse_file(text.encode(), path="web.yaml", validate=None).documents
    assume(len(documents) == 1)
    before = documents[0].body
    for path in list_scalars(before):
        patched = PatchedObject(before)
        patched.apply("replace", [str(step) for step in path], random.choice(["changed", "# x", 3, None]))
        edits = list_scalar_edits(text, before, patched.root)
        if edits is not None:
            (tree,) = compose_documents(text, DEFAULT_LIMITS)
            assert isinstance(tree, YamlDocument)
            assert edits == DocumentEditor(text, tree).edit(before, patched.root)


def list_scalars(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of the scalars of a value."""
    if not isinstance(value, dict | list):
        return [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for step, part in parts for found in list_scalars(part, (*path, step))]


@given(seed=st.integers(0, 2**32))
def test_a_changed_scalar_changes_one_line(seed: int) -> None:
    random = Random(seed)
    body = make_manifest(random)
    body["image"] = random.choice(["nginx:1.27", "yes", "it's", 'say "x"', 3, None, True])
    text = Writer(random).write(body)
    (document,) = parse_file(text.encode(), path="web.yaml", validate=None).documents
    after = {**document.body, "image": random.choice(["nginx:1.28", "# x", "", "a: b", 7, False])}
    origin = Origin("web.yaml", "b" * 40, 0, -1, 1, 1, document.spans)
    found = edit_manifest(text, PatchedBlob(origin, document.body, after))
    old, new = text.split("\n"), found.file.data.decode().split("\n")
    assert not found.refusal
    assert len(old) == len(new)
    changed = [(one, other) for one, other in zip(old, new, strict=True) if one != other]
    assert len(changed) <= 1
    assert yaml.safe_load(found.file.data)["image"] == after["image"]


@each_row(
    ("text", "expected"),
    [
        ("metadata: {name: a}\n", "metadata: {name: a, namespace: shop}\n"),
        ("metadata:\n  name: a\n", "metadata:\n  name: a\n  namespace: shop\n"),
        ("metadata:   # who owns it\n  name: a\n", "metadata:   # who owns it\n  name: a\n  namespace: shop\n"),
        ("metadata:\n  # the name\n    name: a\n", "metadata:\n  # the name\n    name: a\n    namespace: shop\n"),
        ('"metadata":\n  "name": a\n', '"metadata":\n  "name": a\n  namespace: shop\n'),
        ("metadata:\r\n  name: a\r\n", "metadata:\r\n  name: a\r\n  namespace: shop\r\n"),
        ("metadata:\n  name: a\n  namespace:\n", "metadata:\n  name: a\n  namespace: shop\n"),
        ("metadata:\n  name: a\n  namespace: ~\n", "metadata:\n  name: a\n  namespace: shop\n"),
        ('metadata:\n  name: a\n  namespace: ""\n', 'metadata:\n  name: a\n  namespace: "shop"\n'),
        ("metadata: {namespace: null, name: a}\n", "metadata: {namespace: shop, name: a}\n"),
        ("metadata: {name: a} # b\n---\n# c\n---\n", "metadata: {name: a, namespace: shop} # b\n---\n# c\n---\n"),
    ],
)
def test_a_namespace_is_set_once_wherever_the_metadata_is_written(text: str, expected: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    line_end = "\r\n" if "\r" in text else "\n"
    head = f"apiVersion: v1{line_end}kind: ConfigMap{line_end}"
    assert set_namespace(f"{head}{text}".encode(), body, "shop").decode() == f"{head}{expected}"


def test_a_namespace_is_set_in_json_and_in_an_item_of_a_list() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    placed = {**body, "metadata": {"name": "a", "namespace": "shop"}}
    assert json.loads(set_namespace(json.dumps(body).encode(), body, "shop")) == placed
    items = dump({"apiVersion": "v1", "kind": "List", "items": [body]})
    assert read_manifest(set_namespace(items.encode(), body, "shop").decode()) == placed
