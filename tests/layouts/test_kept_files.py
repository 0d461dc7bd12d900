"""What `gitsched init` prints of a proposal that a kept file lacks."""

from __future__ import annotations

import yaml

from gitsched.layouts.kept_files import describe_missing, list_missing

CLUSTER = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: a%s}\nspec: {syncMode: Push}\n"


def test_what_a_kept_document_lacks_is_printed_with_its_name() -> None:
    """It can be added as it is printed: a label does not take the place of the name."""
    found = list_missing("fleet/clusters.yaml", (CLUSTER % "").encode(), CLUSTER % ", labels: {environment: prod}")
    text = describe_missing("fleet/clusters.yaml", found)
    assert yaml.safe_load(text.partition("\n")[2]) == {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "a", "labels": {"environment": "prod"}},
    }


def test_a_document_that_is_missing_is_printed_whole() -> None:
    (found,) = list_missing("fleet/clusters.yaml", b"# none\n", CLUSTER % "")
    assert found == yaml.safe_load(CLUSTER % "")
