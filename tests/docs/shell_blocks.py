"""Follow the shell blocks of a page as a reader does: in their order, in a scratch directory, with the files that the page shows.

A comment that readers do not see says what a block needs that a test cannot have:

    <!-- starts in: examples/repo -->     the page is about a repository that the reader has; here it is the example, reconciled
    <!-- starts after: COMMAND -->        the same; here the command makes it
    <!-- stand-in: kubectl, docker -->    in the next block these programs are scripts of this module
    <!-- until: TEXT -->                  the next block runs until it is ended; here until it prints the text
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests import fork_server
from tests.builders.recorded_cluster import RecordedCluster
from tests.forge.fake_forge import FakeForge
from tests.local import PATIENCE

ROOT = Path(__file__).parents[2]
START = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
REMOTES = (
    "https://git.example.com/shop/fleet.git",
    "https://git.example.com/mirrors/gitsched",
    "https://github.com/acme/fleet.git",
)
"""URLs on the pages, which lead to a repository beside the reader's."""
BLOCK = re.compile(
    r"^(?:<!-- (?:stand-in: (?P<programs>[^\n;]*?))?(?:; )?(?:until: (?P<until>[^\n]*))? -->\n)?"
    r'(?P<indent> *)```(?:yaml title="(?P<file>[^"\n]+)"|(?P<kind>console|sh))\n(?P<text>.*?)^ *```\n',
    re.DOTALL | re.MULTILINE,
)
START_OF_PAGE = re.compile(r"^<!-- starts (?P<example>in: examples/repo|after: (?P<command>[^\n]*)) -->\n", re.MULTILINE)
CLOCK = """\
import os, sys
from datetime import datetime
from gitsched.cli import main, options

class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.fromisoformat(os.environ["NOW"])

options.datetime = Clock
sys.exit(main())
"""
"""gitsched at the time of the page, where one block follows the other within a minute."""
ACCEPT = '#!/bin/sh\ncase " $* " in *" - "* | *"@-"*) cat > /dev/null ;; esac\n'
KUBECTL = """\
#!/bin/sh
# Reads what it applies. Prints the objects of the repository as YAML, and an empty list as JSON; knows no cluster.
case " $* " in *json*) echo '{"apiVersion": "v1", "kind": "List", "items": []}' && exit ;; esac
while [ $# -gt 0 ]; do
  case $1 in
  -f) [ "$2" = - ] && cat > /dev/null || test -e "$2" || exit 1 ;;
  -k) test -f "$2/kustomization.yaml" || exit 1 ;;
  get) cat fleet/clusters.yaml adapter.yaml 2> /dev/null || echo '{kind: List, apiVersion: v1, items: []}' ;;
  esac
  shift
done
"""
FORGE = """\
#!/bin/sh
verb=$1; shift
[ $verb = comment ] && set -- --forge-api {url} --forge-project acme/fleet "$@"
GITSCHED_FORGE_TOKEN=secret exec {gitsched} $verb "$@"
"""
SCORES = """\
#!/bin/sh
echo '{apiVersion: cluster.open-cluster-management.io/v1alpha1, kind: AddOnPlacementScore, metadata: {name: default, namespace: dub}}'
"""
STAND_INS = {
    "curl": ACCEPT,
    "docker": ACCEPT,
    "forge": FORGE,
    "helm": f"#!/bin/sh\ntest -f {ROOT}/deploy/helm/gitsched/Chart.yaml\n",
    "kubectl": KUBECTL,
    "kubeseal": "#!/bin/sh\ncat\n",
    "make": f'#!/bin/sh\nexec /usr/bin/make -s -n -C {ROOT} VENV={sys.prefix} "$@" > /dev/null\n',
    "pip": '#!/bin/sh\ntest "$1" = install\n',
    "python": f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -c "import pkgutil, sys; pkgutil.resolve_name(sys.argv[1])" "$2"\n',
    "write-scores": SCORES,
}
"""What the programs do that a test cannot run: a cluster, a forge, a registry, or minutes of measuring."""


def play(page: str, at: Path, example: Path) -> str:
    """Return the page with what its commands print today. From one block of commands to the next a minute passes.

    `example` is the repository of `make_example`.
    """
    at.parent.mkdir(exist_ok=True, parents=True)
    (at.parent / "gitsched").symlink_to(ROOT)  # the clone from which guides copy their examples
    shutil.copytree(example.parent / "origin.git", at.parent / "origin.git")
    start = START_OF_PAGE.search(page)
    shutil.copytree(example, at) if start and not start["command"] else at.mkdir()
    environment = _make_environment(at, page)
    minutes = 0
    if start and start["command"]:
        execute(start["command"], at, environment | {"NOW": "2026-03-01T08:00:00Z", "GIT_COMMITTER_DATE": "2026-03-01T08:00:00Z"})

    def step(block: re.Match[str]) -> str:
        nonlocal minutes
        text = textwrap.dedent(block["text"])
        if name := block["file"]:
            path = at / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return block[0]
        moment = (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        minutes += 1
        dated = environment | {"NOW": moment, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        for program in re.findall(r"[\w-]+", block["programs"] or ""):
            is_forge = program == "forge"
            script = (
                FORGE.format(gitsched=at.parent / "programs/gitsched", url=FakeForge("secret").url)
                if is_forge
                else STAND_INS[program]
            )
            path = at.parent / f"stand-ins-{minutes}" / ("gitsched" if is_forge else program)
            path.parent.mkdir(exist_ok=True)
            path.write_text(script)
            path.chmod(0o755)
            dated["PATH"] = f"{path.parent}{os.pathsep}{environment['PATH']}"
        if block["until"]:
            _run_until(text, block["until"], at, dated)
            return block[0]
        if block["kind"] == "sh":
            done = subprocess.run(["bash", "-ec", text], cwd=at, env=dated, capture_output=True, text=True)
            assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
            return block[0]
        commands = [line for line in text.splitlines() if line.startswith("$ ")]
        printed = "".join(f"{line}\n{execute(line.removeprefix('$ '), at, dated)}" for line in commands)
        return block[0].replace(block["text"], textwrap.indent(printed, block["indent"]))

    return BLOCK.sub(step, page)


def _run_until(text: str, wanted: str, at: Path, environment: Mapping[str, str]) -> None:
    """Run a block until its output has a text, and end it as Ctrl-C does."""
    free = text.replace(":8080", ":0")  # another test may use the port
    program = at.parent / "process" / "gitsched"  # a process of its own, which gets the signal
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gitsched "$@"\n')
    program.chmod(0o755)
    environment = {**environment, "PATH": f"{program.parent}{os.pathsep}{environment['PATH']}", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        ["bash", "-ec", free],
        cwd=at,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        watchdog = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.daemon = True
        watchdog.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if wanted in line:
                break
        else:
            raise AssertionError(f"{text}: {''.join(lines)}")
        watchdog.cancel()
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()


def execute(command: str, at: Path, environment: Mapping[str, str]) -> str:
    """What a terminal would show; commits under names that do not depend on what came before them, the repository under its own."""
    done = subprocess.run(["/bin/sh", "-c", f"{{ {command}\n}} 2>&1"], cwd=at, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{command}: {done.stdout}{done.stderr}"
    shown = re.sub(r"\b[0-9a-f]{10}\b", "1234567890", done.stdout.replace(str(at), "fleet"))
    quoted = re.sub(r"(?<=: )[0-9a-f]{40}$", r'"\g<0>"', shown, flags=re.MULTILINE)  # YAML quotes ids that begin with a digit
    shown = re.sub(r"\b[0-9a-f]{40}\b", "1234567890" * 4, quoted)
    return re.sub(r"[ \t]+$", "", shown, flags=re.MULTILINE)


_OTHER_READER = re.compile(r"GIT_CONFIG|GITSCHED_|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL)$")
"""Variables of which the reader of a page has none, and the tests have values."""


def _make_environment(at: Path, page: str) -> dict[str, str]:
    """Return the environment of a reader who has git, with a name, and gitsched."""
    programs, home = at.parent / "programs", at.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        '[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n[protocol "file"]\nallow = always\n'
        f'[url "{at.parent}/origin.git"]\n' + "".join(f"insteadOf = {url}\n" for url in REMOTES)
    )
    fork_server.write_script(programs / "gitsched", CLOCK)
    (programs / "date").write_text('#!/bin/sh\necho "$NOW"\n')
    (programs / "date").chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not _OTHER_READER.match(name)},
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "COLUMNS": "400",  # so that nothing is wrapped: where, would depend on the directory
        "PATH": os.pathsep.join((str(programs), sysconfig.get_path("scripts"), os.environ["PATH"])),
        "XDG_CACHE_HOME": str(at.parent / "cache"),
    }
    if "gitsched collect" in page:
        environment["KUBECONFIG"] = str(_write_fleet(at.parent / "kubeconfig"))
    return environment


def make_example(at: Path) -> Path:
    """Return a repository with the example of this project, its placements, a remote and a branch to review."""
    shutil.copytree(ROOT / "examples" / "repo", at)
    environment = _make_environment(at, "") | {"NOW": "2026-03-01T08:00:00Z", "GIT_COMMITTER_DATE": "2026-03-01T08:00:00Z"}
    for command in (
        "git init -q && git add -A && git commit -qm 'The fleet' && gitsched reconcile",
        "git switch -qc feature && echo '# reviewed' >> apps/shop/cart.yaml && git commit -qam 'A comment' && git switch -q main",
        f"git clone -q --bare . ../origin.git && git remote add origin {REMOTES[0]} && git fetch -q",
    ):
        execute(command, at, environment)
    return at


def _write_fleet(path: Path) -> Path:
    """Start two clusters with two and one nodes, and write a kubeconfig with these and one that does not answer."""
    made = {"dub-1": RecordedCluster(), "ash-1": RecordedCluster()}
    made["ash-1"].lists["/api/v1/nodes"].pop()
    servers = {name: cluster.url for name, cluster in made.items()} | {"gone": "http://127.0.0.1:1"}
    parts = {
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in servers.items()],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in servers],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
    return path
