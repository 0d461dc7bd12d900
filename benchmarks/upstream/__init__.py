"""Build and run the original schedulers, so that they are measured on the same machine in the same run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import click

PROGRAMS = Path(__file__).parent


def build(program: str, checkout: Path, directory: Path) -> Path:
    """Compile `program` (the name of a Go file here) as a command of a checkout of its project, without writing to the checkout.

    Needs `go` in PATH and the `vendor/` directory that the checkout has. The binary is written to `directory`.

    Raises:
        click.ClickException: Go is missing or refuses the program.
    """
    overlay = directory / "overlay.json"
    command_directory = checkout / "cmd" / "gitsched-rate"
    overlay.write_text(
        json.dumps({"Replace": {str(command_directory / name): str(PROGRAMS / name) for name in ("common.go", program)}})
    )
    binary = directory / "rate"
    command = ["go", "build", "-mod=vendor", "-overlay", str(overlay), "-o", str(binary), "./cmd/gitsched-rate"]
    try:
        result = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise click.ClickException("--upstream needs Go in PATH: https://go.dev/dl") from error
    if result.returncode:
        raise click.ClickException(f"{program} cannot be built in {checkout}:\n{result.stderr}")
    return binary


def run(binary: Path, case: dict[str, Any]) -> list[float]:
    """Return the numbers that a program prints for an input. It gets one processor, so that its garbage collector does not use a second."""
    environment = {**os.environ, "GOMAXPROCS": "1"}
    result = subprocess.run([binary], input=json.dumps(case), capture_output=True, text=True, env=environment, check=False)
    if result.returncode:
        raise click.ClickException(f"the scheduler fails: {result.stderr}")
    return [float(number) for number in result.stdout.split()]
