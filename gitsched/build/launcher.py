"""Start a program with limits, without network and without files outside of its directory. A script of its own: it imports only the
standard library, and runs before the program in the same process.

Arguments: the descriptor of the executable, its directory, the memory limit in bytes, the time limit in seconds, and the arguments of the
program. `{root}` in them is the directory as the program sees it.
"""

import ctypes
import os
import resource
import sys

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000


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


def limit(memory: int, seconds: int) -> None:
    """Limit memory, processor time, and the size of written files."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Replace this process by the program."""
    executable, directory, memory, seconds, *arguments = sys.argv[1:]
    descriptor = int(executable)
    os.chdir(directory)
    root = isolate(directory)
    limit(int(memory), int(seconds))
    os.set_inheritable(descriptor, False)
    command = [argument.replace("{root}/", root.rstrip("/") + "/").replace("{root}", root) for argument in arguments]
    os.execve(descriptor, command, dict(os.environ))  # noqa: S606


if __name__ == "__main__":
    main()
