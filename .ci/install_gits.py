"""Unpack the git of a Debian release beside that of the machine: `install_gits.py DIRECTORY SUITE [MIRROR]`, such as `build/gits trixie`.

Afterwards DIRECTORY/SUITE/bin has git and its programs, which use the libraries and the loader of that release and leave those of the
machine, and of the programs that git starts, as they are. apt resolves, downloads and verifies the packages, from the mirror of the
machine's own configuration; it needs neither root nor the machine's list of installed packages.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

KEYRINGS = [Path("/usr/share/keyrings", f"debian-archive-keyring.{kind}") for kind in ("gpg", "pgp")]
_WRAPPER = """#!/bin/sh
GIT_EXEC_PATH='{core}'
export GIT_EXEC_PATH
exec '{loader}' --library-path '{libraries}' --argv0 "$0" '{program}' "$@"
"""


def find_mirror() -> str:
    """Return the URL from which apt takes the packages of this machine, if it runs Debian."""
    os_release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", os_release, re.MULTILINE)
    if codename is not None and re.search(r"^ID=debian$", os_release, re.MULTILINE):
        listed = _run(["apt-get", "-oDebug::NoLocking=1", "--print-uris", "update"])
        for suite in (f"{codename[1]}-updates", codename[1]):  # other projects have no updates of a release
            found = re.search(rf"^'(\S+)/dists/{suite}/", listed, re.MULTILINE)
            if found is not None:
                return found[1]
    raise SystemExit("apt has no source of Debian here; name a mirror: make gits MIRROR=URL")


def install(directory: Path, suite: str, mirror: str) -> None:
    """Unpack the newest packages of a suite, in place of those of an earlier call."""
    home = directory.absolute() / suite
    for name in ("etc/preferences.d", "etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True, exist_ok=True)
    keyring = next((path for path in KEYRINGS if path.exists()), None)
    if keyring is None:
        raise SystemExit("the keys of Debian are missing: install debian-archive-keyring")
    sources = home / "etc/sources.list"
    sources.write_text(f"deb [signed-by={keyring}] {mirror} {suite} main\n")
    places = {"Etc": home / "etc", "Etc::sourcelist": sources, "State": home / "state", "Cache": home / "cache"}
    places |= {"State::status": Path("/dev/null"), "Etc::sourceparts": Path("/dev/null")}
    settings = ["APT::Sandbox::User=", "Acquire::Languages=none", "Debug::NoLocking=1"]
    settings += [f"Dir::{name}={path}" for name, path in places.items()]
    apt = ["apt-get", "--quiet", "--quiet", "--yes", *(f"-o{setting}" for setting in settings)]
    _run([*apt, "update"])
    _run([*apt, "clean"])
    _run([*apt, "--no-install-recommends", "--download-only", "install", "git"])
    root = home / "root"
    shutil.rmtree(root, ignore_errors=True)
    for package in sorted((home / "cache/archives").glob("*.deb")):
        if package.name.startswith(("git_", "lib", "zlib")):
            _run(["dpkg-deb", "--extract", str(package), str(root)])
    _wrap_programs(home, root)


def _wrap_programs(home: Path, root: Path) -> None:
    """Put a script in the place of each program, which starts it with the loader and the libraries of its release."""
    loader = next(path for path in sorted(root.rglob("ld-linux*.so.*")) if path.is_file())
    libraries = dict.fromkeys(path.parent for path in sorted(root.rglob("lib*.so.*")) if "gconv" not in path.parts)
    core, programs = root / "usr/lib/git-core", home / "bin"
    for program in sorted((*core.iterdir(), *(root / "usr/bin").glob("git*"))):
        if program.is_file() and not program.is_symlink() and program.read_bytes()[:4] == b"\x7fELF":
            moved = program.parent / ".programs" / program.name
            moved.parent.mkdir(exist_ok=True)
            program.rename(moved)
            paths = ":".join(map(str, libraries))
            program.write_text(_WRAPPER.format(core=core, loader=loader, libraries=paths, program=moved))
            program.chmod(0o755)
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    for program in (root / "usr/bin").glob("git*"):
        (programs / program.name).symlink_to(program)


def _run(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        raise SystemExit(f"there is no {command[0]}: packages of Debian are installed on Debian only")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


if __name__ == "__main__":
    install(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else find_mirror())
