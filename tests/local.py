"""An HTTP server on this machine, and the timeout of tests that wait."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 300.0
"""Timeout in seconds of waits for servers, processes and threads. Waits end with the event; only a failing test takes this long."""


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class LocalServer:
    """Serves at `url` with the handler, each request in a thread, until it is closed."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = _HttpServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
