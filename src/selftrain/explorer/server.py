"""The server of the page: the application, its security headers, and the loop that serves it."""

from __future__ import annotations

import socket
import threading
import webbrowser
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InvalidInput, SelfTrainError
from .hosts import ANY_ADDRESS, LOOPBACK, is_loopback, is_served, served_hosts

__all__ = ["create_app", "serve"]

LARGEST_REQUEST = 8 * 2**20
"""Largest size of a request in bytes, including a visitor's file."""

THREADS = 16


def create_app(
    workers: Any, jobs: Any, opened: Any = None, hosts: frozenset[str] = LOOPBACK
) -> Any:
    """Return the Dash application. It loads nothing from other servers, and answers only requests
    whose `Host` header is in `hosts`.
    """
    from dash import Dash
    from flask import Response, request

    from .callbacks import register
    from .layout import page

    app = Dash(
        "selftrain.explorer",
        title="selftrain explorer",
        update_title="",
        serve_locally=True,
        compress=False,
        assets_folder=_assets(),
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
    )
    app.index_string = app.index_string.replace("<html>", '<html lang="en">')
    app.layout = partial(page, opened)
    register(app, workers, jobs, opened)
    app.server.config["MAX_CONTENT_LENGTH"] = LARGEST_REQUEST
    scripts = " ".join(app.csp_hashes())
    policy = (
        f"default-src 'self'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )

    def reject_foreign_hosts() -> Any:
        written = request.environ.get("HTTP_HOST")
        if is_served(written, hosts):
            return None
        known = ", ".join(sorted(hosts - {ANY_ADDRESS}))
        sentence = f"Host = {written!r} is not served here; ask for one of {known}.\n"
        return Response(sentence, 403, mimetype="text/plain")

    def secure(response: Any) -> Any:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    app.server.before_request(reject_foreign_hosts)
    app.server.after_request(secure)
    return app


def _assets() -> str:
    return str(Path(__file__).parent / "assets")


def serve(
    host: str = "127.0.0.1",
    port: int = 8050,
    open_browser: bool = True,
    say: Any = print,
    path: Path | None = None,
) -> None:
    """Serve the page until it is interrupted.

    Arguments:
        host: address to listen at; the default can be reached from this machine only.
        port: 0 takes any free one.
        open_browser: open the page in a browser.
        say: called with each message for the user.
        path: a saved run to show first, or a sweep whose points can be clicked.
    """
    try:
        import waitress

        from .connections import LIMITS, TimedChannel
        from .jobs import JobBoard
        from .workers import Workers
    except ImportError as error:
        reason = f"the page needs {error.name}: pip install '.[explore]' in a clone"
        raise SelfTrainError(reason) from None
    opened, query = _opened(path)
    listening = _listen(host, port)
    bound, place = listening.getsockname()[:2]
    workers, jobs = Workers(), JobBoard()
    try:
        app = create_app(workers, jobs, opened, served_hosts(host, bound))
        server = waitress.create_server(
            app.server,
            sockets=[listening],
            threads=THREADS,
            max_request_body_size=LARGEST_REQUEST,
            **LIMITS,
        )
        server.channel_class = TimedChannel
        if not is_loopback(host):
            say(f"Listening at {host}: other machines can reach this page. It has no password.")
        name = "localhost" if is_loopback(host) else f"[{host}]" if ":" in host else host
        address = f"http://{name}:{place}/{query}"
        say(f"The explorer is at {address} (ctrl-C ends it).")
        if open_browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        jobs.close()
        workers.close()
        listening.close()


def _opened(path: Path | None) -> tuple[Any, str]:
    """Return the sweep at a path (or None), and the query of the address that shows a saved run."""
    if path is None:
        return None, ""
    from .opened import Map, open_path

    found = open_path(path)
    return (found, "") if isinstance(found, Map) else (None, "?" + found.query())


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket at host and port; raise `InvalidInput` if that is not possible."""
    if not 0 <= port <= 65535:
        raise InvalidInput("port", port, "must be a whole number from 0 to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        accepted = "must be a free port of this machine (0 takes any)"
        raise InvalidInput("host:port", f"{host}:{port}", f"{error.strerror}; {accepted}") from None
    return listening
