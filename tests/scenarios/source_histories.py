"""Repositories as people keep them: some files are hidden, listed in kustomizations, broken or defined twice; and random commits."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from tests.scenarios.plain_histories import DEPLOYMENT, LANES, NAMESPACE, TEAMS, Files, PlainHistory, write_policy

ROOTS = "[blue, red, green, clusters, policies, namespaces, gitsched.yaml]"
FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: other, namespace: flux-system}
spec: {interval: 10m, path: ./nothing, prune: true, sourceRef: {kind: GitRepository, name: flux-system}}
"""


DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: %s
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""
WIDGET = """\
apiVersion: %s
kind: %s
metadata: {name: w%d, namespace: blue, labels: {lane: %s}}
spec: {size: %s}
"""
WIDGETS = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: widgets}
spec:
  resourceSelectors:
  - {apiVersion: example.com/v1, kind: Widget}
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}
  - {apiVersion: cert-manager.io/v1, kind: Certificate, labelSelector: {matchLabels: {lane: one}}}
  placement: {clusterAffinity: {labelSelector: {matchLabels: {zone: %s}}}}
"""


class SourceHistory(PlainHistory):
    """A plain repository with some features, and commits that concern them, too."""

    features: ClassVar[dict[str, str]] = {
        "paths": f"  source: {{paths: {ROOTS}}}\n",
        "ignore": "",
        "settings ignore": "  source: {ignore: [docs, '*-old.yaml']}\n",
        "lists": "",
        "definitions": "",
        "broken": "",
        "repeated": "",
    }

    def __init__(self, dice: Random, *features: str) -> None:
        super().__init__(dice, lenient=True, more="".join(self.features[feature] for feature in features))
        self._features = features
        self.files |= {"namespaces/other.yaml": NAMESPACE % ("other", "team", 1), "docs/notes.md": "notes"}
        self.files["docs/example.yaml"] = self._write("hidden")
        for feature in features:
            self.files |= self._start(feature)

    def _start(self, feature: str) -> Files:
        """Return the files of a feature."""
        if feature == "ignore":
            return {".sourceignore": "docs\n", "red/.sourceignore": "*-old.yaml\n"}
        if feature == "lists":
            return {
                "blue/kustomization.yaml": self._list_files("blue"),
                "base/kustomization.yaml": "resources: [../blue, later.yaml]\n",
            }
        if feature == "definitions":
            widgets: Files = {f"red/w{number}.yaml": self._write_widget(number, 1) for number in range(3)}
            return {"crds/widgets.yaml": DEFINITION % "Namespaced", "policies/widgets.yaml": WIDGETS % "east", **widgets}
        return {}

    def _write(self, name: str, lane: str = "") -> str:
        dice = self._dice
        lane = lane or dice.choice(LANES)
        return DEPLOYMENT % {"name": name, "team": dice.choice(TEAMS), "lane": lane, "number": dice.randrange(1, 9), "more": ""}

    def _write_widget(self, number: int, size: int | str) -> str:
        kind = self._dice.choice((("example.com/v1", "Widget"),) * 4 + (("cert-manager.io/v1", "Certificate"),))
        return WIDGET % (*kind, number, self._dice.choice(LANES), size)

    def _list_files(self, team: str) -> str:
        names = [path.rpartition("/")[2] for path, text in self.files.items() if text and path.startswith(f"{team}/app")]
        return "resources:\n" + "".join(f"- {name}\n" for name in names)

    def list_changes(self, path: str) -> dict[str, Files]:
        """Return the changes of each kind, with those of files that are not read, or that decide what is."""
        dice, number = self._dice, self._dice.randrange(9)
        hidden = f"docs/{dice.choice(('example', 'other', 'More'))}.yaml"
        text = self._write(f"hidden{number}")
        folder = dice.choice(("docs", "red", "blue", "base", "more"))
        changes = super().list_changes(path)
        changes["hidden"] = {hidden: dice.choice((None, text, text, write_policy(f"hidden{number}", "east", "Duplicated")))}
        changes["hidden again"] = {hidden: text}
        changes["other"] = {f"{folder}/values{number}.yaml": dice.choice((None, f"a: {number}\n", "[1, 2]\n"))}
        changes["not read"] = {f"{folder}/notes{number}.md": dice.choice((None, "notes"))}
        changes["dot"] = {f".github/workflows/ci{number}.yml": dice.choice((None, "on: push\n", "on: push\n", FLUX))}
        changes["old"] = {f"{folder}/app{number}-old.yaml": dice.choice((None, text, text))}
        changes["later"] = {"base/later.yaml": dice.choice((None, text, text))}
        changes["case"] = {dice.choice(("red/OLD.yaml", "red/old.yaml", "RED/old.yaml")): dice.choice((None, text, text))}
        if "ignore" in self._features and dice.random() < 0.2:
            changes["rules"] = {
                ".sourceignore": dice.choice(("docs\n", "docs/*\n!docs/example.yaml\n", "policies\nclusters\ndocs\n"))
            }
        if "lists" in self._features:
            changes["list"] = {"blue/kustomization.yaml": self._list_files("blue")}
        if "repeated" in self._features:
            names = ("blue/one.yaml", "red/one.yaml", "green/two.yaml")
            copy, label = dice.choice(("copy", "copy", "other")), dice.choice((*LANES, "none"))
            same = DEPLOYMENT % {"name": copy, "team": "blue", "lane": label, "number": dice.choice((1, 1, 2)), "more": ""}
            wrong = same.replace("replicas: ", "replicas: x")
            changes["copy"] = {dice.choice(names): dice.choice((None, same, same, same, wrong))}
            changes["copies"] = dict.fromkeys(dice.sample(names, 2), same)
        if "broken" in self._features:
            name = dice.choice(("red/broken.yaml", "red/broken.yaml", "policies/broken.yaml"))
            valid = self._write("broken") if name.startswith("red") else write_policy("broken", "east", "Duplicated")
            broken = (f"{valid}  [\n", f"{valid}  [ #\n", "a: 1\n", valid.replace("name: broken", "nam: broken"))
            text = dice.choice((None, valid, broken[0], *broken))
            changes["break"] = {name: text}
            if text and dice.random() < 0.3:
                changes["break again"] = {name: str(self.files.get(name) or text) + "#\n"}
        if "definitions" in self._features:
            widget = self._write_widget(number, dice.choice((1, 2, 3, "'x'")))
            changes["widget"] = changes["widget again"] = {f"red/w{number}.yaml": dice.choice((None, widget, widget))}
            changes["widgets"] = {"policies/widgets.yaml": WIDGETS % dice.choice(("east", "west"))}
            scope = dice.choice(("Namespaced", "Namespaced", "Cluster"))
            changes["definition"] = {"crds/widgets.yaml": dice.choice((None, DEFINITION % scope, DEFINITION % scope))}
        if dice.random() < 0.1:
            changes["tool"] = {hidden: dice.choice((None, FLUX))}
        return changes
