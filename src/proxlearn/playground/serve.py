"""A server of one folder, for this machine alone."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from proxlearn.errors import InputError


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: what a browser asks for is of no interest to whoever looks at the page."""


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """It listens at once, at this port or at a free one, and answers in `serve_forever()`."""
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(folder)))
    except (OSError, OverflowError):
        raise InputError(
            f"Port {port} is taken or not allowed: give another --port, or none for a free one."
        ) from None


def address(running: ThreadingHTTPServer) -> str:
    """Where a browser finds it."""
    return f"http://127.0.0.1:{running.server_port}/"
