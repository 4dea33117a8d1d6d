"""A server of the playground, for this machine alone: the page is there at once, and each operator
when it has been written."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from proxlearn.errors import InputError, ProxlearnError
from proxlearn.playground.folder import write_operator, write_page
from proxlearn.playground.playable import Playable

Coming = dict[str, "Future[Path]"]  # what is being written, by the path it is asked for by


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *given: Any, coming: Coming, **more: Any):
        self.coming = coming
        super().__init__(*given, **more)

    def do_GET(self) -> None:  # as the library calls it
        """Wait for what is still being written."""
        try:
            if self.path in self.coming:
                self.coming[self.path].result()
        except ProxlearnError as error:
            self.send_error(500, str(error))
            return
        super().do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what a browser asks for is of no interest to whoever looks at the page."""


@contextmanager
def serving(
    folder: Path, playables: Sequence[Playable], port: int = 0
) -> Iterator[ThreadingHTTPServer]:
    """A server of these operators, at this port or at a free one; it answers once it is asked to
    `serve_forever()`."""
    write_page(folder, playables)
    writer = ThreadPoolExecutor(1)
    coming: Coming = {}
    try:
        with _listening(port, partial(_Handler, directory=str(folder), coming=coming)) as running:
            for each in playables:
                coming[f"/data/{each.name}.js"] = writer.submit(write_operator, folder, each)
            yield running
    finally:
        writer.shutdown(cancel_futures=True)


def _listening(port: int, handler: Any) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError):
        raise InputError(
            f"Port {port} is taken or not allowed: give another --port, or none for a free one."
        ) from None


def address(running: ThreadingHTTPServer) -> str:
    """Where a browser finds it."""
    return f"http://127.0.0.1:{running.server_port}/"
