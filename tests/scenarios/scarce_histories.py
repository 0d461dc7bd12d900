"""Random histories of a fleet that has too little capacity for what is asked of it at times, so that many workloads divide what is left and
the guard withholds it, for several commits about other workloads."""

from __future__ import annotations

from random import Random

from tests.scenarios.test_shared_capacity import AGGREGATED, BY_CAPACITY, DUPLICATED, cluster, deployment, policy

SPACES = ("shop", "other")
CLUSTERS = ("ams", "bru", "cph", "del")
APPS = 8
_TWO = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]\n"
WAYS = (AGGREGATED, AGGREGATED + _TWO, BY_CAPACITY, BY_CAPACITY + _TWO)


class ScarceHistory:
    """Commits to a repository with two namespaces; what gitsched makes of them is not known here."""

    def __init__(self, dice: Random) -> None:
        self._dice, self._release = dice, 0
        self.files: dict[str, str | None] = {f"scarce/{name}.yaml": self._write_cluster(name) for name in CLUSTERS}
        for space in SPACES:
            self.files[f"{space}/policy.yaml"] = self._write_policy(space)
            self.files |= self.scale(space, 0)

    def _write_cluster(self, name: str, taint: str = "") -> str:
        observed = self._dice.choice(("", "", "2026-01-01T00:00:00Z"))
        return cluster(name, observed, taint, cpu=self._dice.choice((60, 80, 120)), used=self._dice.choice((0, 20)))

    def _write_policy(self, space: str) -> str:
        way = self._dice.choice((*WAYS, AGGREGATED + _TWO, DUPLICATED) if space == "other" else WAYS)
        return policy(way).replace("namespace: shop", f"namespace: {space}")

    def _write(self, space: str, number: int, replicas: int) -> str:
        text = deployment(f"app-{number}", replicas, f"cpu: {500 + 250 * (number % 3)}m")
        return text.replace("namespace: shop", f"namespace: {space}").replace("image: ", f"image: v{self._release}/")

    def scale(self, space: str, replicas: int, numbers: range = range(APPS)) -> dict[str, str | None]:
        """Return workloads of a namespace with as many replicas; 0 for a few, which differ."""
        return {f"{space}/{number}.yaml": self._write(space, number, replicas or 3 + number) for number in numbers}

    def go_on(self) -> dict[str, str | None]:
        """Return the changes of the next commit."""
        dice, files = self._dice, dict[str, str | None]()
        space, number = dice.choice(SPACES), dice.randrange(APPS)
        chance = dice.random()
        if chance < 0.2:
            files = self.scale(dice.choice(("shop", "shop", space)), dice.choice((0, 20, 40, 60)))
        elif chance < 0.45:
            self._release += 1
            files = self.scale(space, 0, range(number, number + 1))
        elif chance < 0.6:
            files = self.scale(space, dice.choice((1, 10, 60)), range(number, number + 1))
        elif chance < 0.75:
            name = dice.choice(CLUSTERS)
            files = {f"scarce/{name}.yaml": self._write_cluster(name, dice.choice(("", "", "", "gone")))}
        elif chance < 0.85:
            files = {f"{space}/policy.yaml": dice.choice((*[self._write_policy(space)] * 4, None))}
        elif chance < 0.95:
            files = {f"{space}/{one}.yaml": None for one in dice.sample(range(APPS), dice.choice((1, 1, 5)))}
        changed = {path: text for path, text in files.items() if text != self.files.get(path)}
        self.files |= changed
        return changed
