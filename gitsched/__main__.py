"""The command line: entry point of `python -m gitsched` and of the installed script."""

import sys

INTERRUPTED = 130


def main() -> int:
    """Run one command and return its exit code. An interrupt while modules are imported shows no traceback, either."""
    try:
        from gitsched.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
