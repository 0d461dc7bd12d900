"""Start a program with limits, without network and without files outside of its directory. A script of its own: it imports only the
standard library, and runs before the program in the same process.

Arguments: the descriptor of the executable, its directory, the limits on memory in bytes, on processor time in seconds and on a written
file in bytes, and the arguments of the program. `{root}` in them and in TMPDIR is the directory as the program sees it.
"""

import ctypes
import os
import resource
import sys

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_SET_PARENT_DEATH_SIGNAL, _KILL = 1, 9


def isolate(directory: str) -> str:
    """Enter a network namespace without interfaces, and make the directory the root. Return the root as the program sees it.

    A machine that forbids namespaces to this user runs the program without them: nothing that it reads names a file or host outside.
    """
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_NEW_USER | _NEW_NETWORK) != 0 and unshare(_NEW_NETWORK) != 0:
        return directory
    try:
        os.chroot(directory)
    except OSError:
        return directory
    os.chdir("/")
    return "/"


def limit(memory: int, seconds: int, written: int) -> None:
    """Limit memory, processor time, and the size of written files. The program ends with the process that started it."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, _KILL)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (written, written))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _name_root(text: str, root: str) -> str:
    return text.replace("{root}/", root.rstrip("/") + "/").replace("{root}", root)


def main() -> None:
    """Replace this process by the program."""
    executable, directory, memory, seconds, written, *arguments = sys.argv[1:]
    descriptor = int(executable)
    os.chdir(directory)
    root = isolate(directory)
    limit(int(memory), int(seconds), int(written))
    os.set_inheritable(descriptor, False)
    environment = {**os.environ, "TMPDIR": _name_root(os.environ["TMPDIR"], root)}
    os.execve(descriptor, [_name_root(argument, root) for argument in arguments], environment)  # noqa: S606


if __name__ == "__main__":
    main()
