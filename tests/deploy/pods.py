"""Run the container of a pod as a node would, without a container engine: the command line, environment, user, volumes and read-only root
of its manifest, in namespaces of its own for mounts and processes. It needs root.

The root has what the image has: the system of this machine (/usr), the Python of the tests, gitsched, and the instructions ENV, WORKDIR and
ENTRYPOINT of the Dockerfile. The network is that of this machine.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.deploy.rendering import ROOT, Manifest, find
from tests.local import PATIENCE

USER = 10001
_ACCOUNTS = {
    "passwd": f"root:x:0:0::/root:/bin/sh\ngitsched:x:{USER}:{USER}::/home/gitsched:/bin/sh\n",
    "group": f"gitsched:x:{USER}:\n",
}
_SYSTEM_FILES = ("nsswitch.conf", "hosts", "resolv.conf", "ld.so.cache", "ld.so.conf", "localtime")
_SYSTEM_DIRECTORIES = ("ssl", "alternatives")
_DEVICES = ("null", "zero", "full", "random", "urandom")


@functools.cache
def can_isolate() -> bool:
    """Return whether this process may create mount and process namespaces as root."""
    command = ["unshare", "--mount", "--pid", "--fork", "true"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


@functools.cache
def read_image() -> tuple[list[str], dict[str, str], str, str]:
    """Return entrypoint, environment, working directory and user of the last stage of the Dockerfile."""
    stage = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    found = dict(re.findall(r"^(ENV|ENTRYPOINT|WORKDIR|USER) (.+)$", stage, re.MULTILINE))
    environment = dict(pair.split("=", 1) for pair in shlex.split(found["ENV"]))
    return json.loads(found["ENTRYPOINT"]), environment, found["WORKDIR"], found["USER"]


class Pod:
    """A pod of a Deployment or CronJob. Its emptyDir volumes live as long as this object, so that `start` again is a restart of the
    container in the same pod."""

    def __init__(self, spec: Manifest, objects: Sequence[Manifest], secret: Mapping[str, str], at: Path) -> None:
        self.spec, self.at = spec, at
        (self.container,) = spec["containers"]
        environment = find(objects, "ConfigMap", self.container["envFrom"][0]["configMapRef"]["name"])["data"]
        entrypoint, variables, self.directory, _ = read_image()
        self.environment = {"PATH": "/opt/bin:/usr/local/bin:/usr/bin:/bin", **variables, **environment}
        self.arguments = [*entrypoint, *(self._expand(argument) for argument in self.container["args"])]
        self._process: subprocess.Popen[str] | None = None
        self.log = at / "log"
        at.mkdir()
        for volume in spec["volumes"]:
            self._provide(volume, objects, secret)

    def start(self, *command: str) -> None:
        """Start the container; `command` replaces its entrypoint and arguments."""
        image = self.at / "image"
        if not image.exists():
            image.mkdir()
        script = [*self._list_mounts(image), self._format_command(image, command or self.arguments)]
        launch = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "sh",
            "-euc",
            "\n".join(script),
        ]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                launch, stdout=log, stderr=subprocess.STDOUT, text=True, env={"PATH": os.environ["PATH"]}
            )

    def execute(self, *command: str) -> str:
        """Run a command in the container instead of its own, and return what it prints."""
        before = self.log.stat().st_size if self.log.exists() else 0
        self.start(*command)
        self.wait()
        return self.log.read_text()[before:]

    def signal(self, number: int) -> None:
        """Send a signal to the first process of the container."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        os.kill(int(children[0]), number)

    def wait(self) -> int:
        """Wait until the container ends; return its exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def stop(self) -> int:
        """Stop the container as the node does: SIGTERM, and after the grace period SIGKILL."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        try:
            return self._process.wait(self.spec["terminationGracePeriodSeconds"])
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def kill(self) -> None:
        """Kill the container, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGKILL)
            self._process.wait(PATIENCE)

    def probe(self, name: str) -> tuple[int, str]:
        """Send the request of a probe, such as `readinessProbe`."""
        request = self.container[name]["httpGet"]
        return self.get(request["path"], request["port"])

    def get(self, path: str, port: str = "http") -> tuple[int, str]:
        """Send a GET request to a port of the container; 0 and the reason without an answer."""
        (number,) = (entry["containerPort"] for entry in self.container["ports"] if entry["name"] == port)
        connection = HTTPConnection("127.0.0.1", number, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except ConnectionError as error:
            return 0, str(error)
        finally:
            connection.close()

    def list_events(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of the log about an event."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == name]

    def wait_for(self, condition: Any) -> None:
        """Wait until the condition holds, while the container runs."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self._process is not None
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.01)

    def _expand(self, text: str) -> str:
        return re.sub(r"\$\((\w+)\)", lambda match: self.environment[match[1]], text)

    def _provide(self, volume: Manifest, objects: Sequence[Manifest], secret: Mapping[str, str]) -> None:
        """Create the directory of a volume with the owners and modes that a kubelet gives it."""
        directory = self.at / "volumes" / volume["name"]
        directory.mkdir(parents=True)
        group = self.spec["securityContext"]["fsGroup"]
        files: Mapping[str, str] = {}
        if "configMap" in volume:
            files = find(objects, "ConfigMap", volume["configMap"]["name"])["data"]
        elif "secret" in volume:
            files = secret
        mode = volume.get("secret", {}).get("defaultMode", 0o644)
        for name, text in files.items():
            path = directory / name
            path.write_text(text)
            path.chmod(mode)
            os.chown(path, 0, group)
        os.chown(directory, 0, group)
        directory.chmod(0o2777 if "emptyDir" in volume else 0o755)

    def _list_mounts(self, image: Path) -> list[str]:
        """Return the shell commands that mount the root of the container at `image`."""
        python = Path(sys.base_prefix)
        binds = [
            (Path("/usr"), "/usr", "ro"),
            (ROOT, "/opt/gitsched", "ro"),
            (Path(sysconfig.get_path("purelib")), "/opt/site", "ro"),
        ]
        if not python.is_relative_to("/usr"):
            binds.append((python, str(python), "ro"))
        binds += [(Path("/etc") / name, f"/etc/{name}", "ro") for name in _SYSTEM_DIRECTORIES if (Path("/etc") / name).is_dir()]
        for mount in self.container["volumeMounts"]:
            access = "ro" if mount.get("readOnly") else "rw"
            binds.append((self.at / "volumes" / mount["name"], mount["mountPath"], access))
        root = shlex.quote(str(image))
        launcher = f'#!/bin/sh\nPYTHONPATH=/opt/gitsched:/opt/site exec {sys._base_executable} -m gitsched "$@"\n'
        lines = [f"mount -t tmpfs -o mode=755 tmpfs {root}", f"cd {root}"]
        lines += [f"mkdir -p etc dev proc opt/bin home/gitsched .{self.directory}"]
        lines += [f"printf %s {shlex.quote(text)} > etc/{name}" for name, text in _ACCOUNTS.items()]
        lines += [f"cp /etc/{name} etc/" for name in _SYSTEM_FILES if Path(f"/etc/{name}").exists()]
        lines += [f"ln -s usr/{name} {name}" for name in ("bin", "sbin", "lib", "lib64") if Path(f"/usr/{name}").exists()]
        lines += [f"printf %s {shlex.quote(launcher)} > opt/bin/gitsched", "chmod 755 opt/bin/gitsched"]
        lines += [f"touch dev/{name}; mount --bind /dev/{name} dev/{name}" for name in _DEVICES]
        for source, target, access in binds:
            lines += [f"mkdir -p .{target}", f"mount --bind {shlex.quote(str(source))} .{target}"]
            lines += [f"mount -o remount,bind,{access} .{target}"]
        lines += ["mount -t proc proc proc"]
        if self.container["securityContext"]["readOnlyRootFilesystem"]:
            lines += ["mount -o remount,ro ."]
        return lines

    def _format_command(self, image: Path, command: Sequence[str]) -> str:
        context = self.spec["securityContext"]
        user, group = context["runAsUser"], context["runAsGroup"]
        assigned = [f"{name}={value}" for name, value in self.environment.items()]
        confined = [
            "chroot",
            f"--userspec={user}:{group}",
            f"--groups={context['fsGroup']}",
            str(image),
            "/usr/bin/env",
            "-C",
            self.directory,
            "-i",
            *assigned,
        ]
        confined += ["/usr/bin/setpriv", "--no-new-privs", "--inh-caps=-all"]
        return shlex.join(["exec", *confined, *command])
