"""Start programs with limits, without network and without files outside of their directory. A script of its own: it imports only the
standard library, and starts each program in a copy of its process.

The argument is the descriptor of a socket. A request is a JSON object: the `directory` of a program, its `arguments` and `environment`,
and the limits `memory` in bytes, processor time in `seconds`, and bytes of a `written` file. `{root}` in arguments and in TMPDIR is the
directory as the program sees it. Descriptors of the executable and of both outputs come with it. The answers are the id of the process
group, and the exit code, negative for a signal. The script ends with the socket.
"""

import contextlib
import ctypes
import json
import os
import resource
import socket
import sys

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_SET_PARENT_DEATH_SIGNAL, _KILL = 1, 9
_MAX_REQUEST = 1 << 16
"""Bytes of a request; `run_isolated` refuses larger ones."""
_LIBRARY = ctypes.CDLL(None, use_errno=True)


MAX_PROCESSES = 512
"""Processes and threads of a program."""


def isolate(directory: str) -> tuple[str, bool]:
    """Enter a network namespace without interfaces, and make the directory the root. Return the root as the program sees it, and whether
    the program has a user namespace of its own.

    A machine that forbids namespaces to this user runs the program without them: nothing that it reads names a file or host outside.
    """
    own = _LIBRARY.unshare(_NEW_USER | _NEW_NETWORK) == 0
    if not own and _LIBRARY.unshare(_NEW_NETWORK) != 0:
        return directory, False
    try:
        os.chroot(directory)
    except OSError:
        return directory, own
    os.chdir("/")
    return "/", own


def limit_processes(most: int = MAX_PROCESSES) -> None:
    """Limit the processes and threads in a user namespace of its own. The kernel counts those of each namespace since version 5.14; before,
    it counted those of the user, so there is no limit. Processes of root have none."""
    major, minor = (int("".join(filter(str.isdigit, part)) or "0") for part in os.uname().release.split(".")[:2])
    if (major, minor) >= (5, 14):
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def end_with_parent() -> None:
    """Let this process end with the one that started it."""
    _LIBRARY.prctl(_SET_PARENT_DEATH_SIGNAL, _KILL)


def limit(memory: int, seconds: int, written: int) -> None:
    """Limit memory, processor time, and the size of written files. The program ends with the process that started it."""
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (written, written))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _name_root(text: str, root: str) -> str:
    return text.replace("{root}/", root.rstrip("/") + "/").replace("{root}", root)


def run(request: dict, executable: int, output: int, errors: int) -> None:  # type: ignore[type-arg]  # JSON
    """Replace this process by the program."""
    os.setsid()
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    directory = request["directory"]
    os.chdir(directory)
    root, own = isolate(directory)
    if own:
        limit_processes()
    limit(request["memory"], request["seconds"], request["written"])
    os.set_inheritable(executable, False)
    environment = {**request["environment"], "TMPDIR": _name_root(request["environment"]["TMPDIR"], root)}
    os.execve(executable, [_name_root(argument, root) for argument in request["arguments"]], environment)  # noqa: S606


def serve(requests: socket.socket) -> None:
    """Run a program for each request, one after the other."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST, 3)
        if not data:
            return
        child = os.fork()
        if child == 0:
            try:
                run(json.loads(data), *descriptors)
            except BaseException:  # noqa: BLE001 - this process must not continue
                sys.excepthook(*sys.exc_info())
            os._exit(1)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(b"%d" % child)
        _, status = os.waitpid(child, 0)
        requests.send(b"%d" % os.waitstatus_to_exitcode(status))


def _open_socket(descriptor: int) -> socket.socket:
    os.set_inheritable(descriptor, False)  # a program must not answer in place of this script
    return socket.socket(fileno=descriptor)


if __name__ == "__main__":
    end_with_parent()
    with contextlib.suppress(OSError, KeyboardInterrupt):
        serve(_open_socket(int(sys.argv[1])))
