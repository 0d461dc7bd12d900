"""Unpack the git of a Debian release beside that of the machine: `install_gits.py DIRECTORY SUITE`, for example `build/gits trixie`.

Afterwards DIRECTORY/SUITE/bin has git and its programs, which use the libraries and the loader of that release and leave those of the
machine, and of the programs that git starts, as they are. apt resolves, downloads and verifies the packages, from the mirror of the
machine's own configuration; it needs neither root nor the machine's list of installed packages.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import rmtree

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_WRAPPER = """#!/bin/sh
GIT_EXEC_PATH='{core}'
export GIT_EXEC_PATH
exec '{loader}' --library-path '{libraries}' --argv0 "$0" '{program}' "$@"
"""


def find_mirror() -> str:
    """Return the URL from which apt takes Debian's packages on this machine."""
    rows = _run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(SUITE) $(CODENAME) $(REPO_URI)"]).splitlines()
    fields = [row.split() for row in rows]
    found = [row[3] for row in fields if len(row) == 4 and row[0] == "Debian" and not row[2].endswith(("-security", "-updates"))]
    if not found:
        raise SystemExit("apt has no source of Debian here; run `apt-get update` as root, or name a mirror: make gits MIRROR=URL")
    return found[0]


def install(directory: Path, suite: str, mirror: str) -> Path:
    """Return the directory with the programs, made anew from the newest packages of the suite."""
    home = directory.absolute() / suite
    for name in ("etc/preferences.d", "etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True, exist_ok=True)
    sources = home / "etc/sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {suite} main\n")
    places = {"Etc": home / "etc", "Etc::sourcelist": sources, "State": home / "state", "Cache": home / "cache"}
    places |= {"State::status": Path("/dev/null"), "Etc::sourceparts": Path("/dev/null")}
    options = [f"-oDir::{name}={path}" for name, path in places.items()]
    apt = [
        "apt-get",
        "--quiet",
        "--quiet",
        "--yes",
        *options,
        "-oAPT::Sandbox::User=",
        "-oAcquire::Languages=none",
        "-oDebug::NoLocking=1",
    ]
    _run([*apt, "update"])
    _run([*apt, "clean"])
    _run([*apt, "--no-install-recommends", "--download-only", "install", "git"])
    root = home / "root"
    rmtree(root, ignore_errors=True)
    for package in sorted((home / "cache/archives").glob("*.deb")):
        if package.name.startswith(("git_", "lib", "zlib")):
            _run(["dpkg-deb", "--extract", str(package), str(root)])
    return _link_programs(home, root)


def _link_programs(home: Path, root: Path) -> Path:
    """Put a script in the place of each program, which starts it with the loader and the libraries of its release."""
    loader = next(path for path in sorted(root.rglob("ld-linux*.so.*")) if path.is_file())
    libraries = dict.fromkeys(path.parent for path in sorted(root.rglob("lib*.so.*")) if "gconv" not in path.parts)
    core, bin_directory = root / "usr/lib/git-core", home / "bin"
    for program in sorted((*core.iterdir(), *(root / "usr/bin").glob("git*"))):
        if program.is_file() and not program.is_symlink() and program.read_bytes()[:4] == b"\x7fELF":
            moved = program.parent / ".programs" / program.name
            moved.parent.mkdir(exist_ok=True)
            program.rename(moved)
            paths = ":".join(map(str, libraries))
            program.write_text(_WRAPPER.format(core=core, loader=loader, libraries=paths, program=moved))
            program.chmod(0o755)
    rmtree(bin_directory, ignore_errors=True)
    bin_directory.mkdir()
    for program in (root / "usr/bin").glob("git*"):
        (bin_directory / program.name).symlink_to(program)
    return bin_directory


def _run(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:1])} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


if __name__ == "__main__":
    install(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else find_mirror())
