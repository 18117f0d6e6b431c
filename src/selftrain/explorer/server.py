"""The server of the page: the application, its security headers, and the loop that serves it.

Requests with a foreign `Host` header are rejected, against DNS rebinding: a page of another site
must not reach this server through a domain name of its own that resolves to this machine. A browser
sends the name in the address, so a request with a foreign name comes from a foreign page. The port
is not compared: that would add no protection, and a tunnel may use another port.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
import webbrowser
from functools import partial
from pathlib import Path
from typing import Any

import waitress
from dash import Dash
from flask import Response, request
from waitress.channel import HTTPChannel

from ..errors import InvalidInput
from .callbacks import register
from .jobs import JobBoard
from .layout import page
from .opened import Map, open_path
from .workers import Workers

LARGEST_REQUEST = 8 * 2**20
"""Largest size of a request in bytes, including a visitor's file."""

THREADS = 16

REQUEST_SECONDS = 30.0
"""Longest time that a request may take to arrive."""

CONNECTIONS: dict[str, Any] = {
    "connection_limit": 900,
    "channel_timeout": 15,
    "cleanup_interval": 5,
    "asyncore_use_poll": True,
}
"""Options of waitress. Its default of 100 connections could be used up by 100 incomplete requests;
900 is below the 1024 files that a process may usually open, and `poll` has no limit of its own.
Silent connections are closed after 15 to 20 seconds.
"""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which a machine reaches itself."""

ANY_ADDRESS = "*"
"""Stands for every numeric address, if the server listens at all addresses of its machine."""

_WRITTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:/@\s]+))(?::[0-9]{1,5})?")


def create_app(
    workers: Any, jobs: Any, opened: Any = None, hosts: frozenset[str] = LOOPBACK
) -> Any:
    """Return the Dash application. It loads nothing from other servers, and answers only requests
    whose `Host` header is in `hosts`.
    """
    app = Dash(
        "selftrain.explorer",
        title="selftrain explorer",
        update_title="",
        serve_locally=True,
        compress=False,
        assets_folder=str(Path(__file__).parent / "assets"),
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
            **CONNECTIONS,
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


class TimedChannel(HTTPChannel):  # type: ignore[misc]
    """A connection whose requests must arrive within `REQUEST_SECONDS`."""

    begun = 0.0

    def received(self, data: bytes) -> Any:
        """Receive a part of a request; close the connection if the request took too long."""
        now = time.monotonic()
        if self.request is None:
            self.begun = now
        elif now - self.begun > REQUEST_SECONDS:
            self.will_close = True
            return False
        return super().received(data)


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")


def served_hosts(host: str, bound: str) -> frozenset[str]:
    """Return the names and addresses that a request to the server may use.

    Arguments:
        host: the host that the user asked to listen at.
        bound: the address of the socket.
    """
    if is_loopback(host):
        return LOOPBACK | {host.lower(), bound}
    if bound in ("0.0.0.0", "::"):
        names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return LOOPBACK | names | {host.lower(), ANY_ADDRESS}
    return frozenset({host.lower(), bound})


def is_served(written: str | None, hosts: frozenset[str]) -> bool:
    """Return whether a `Host` header names one of the hosts.

    >>> is_served("localhost:8050", LOOPBACK), is_served("evil.example:8050", LOOPBACK)
    (True, False)
    """
    found = _WRITTEN.fullmatch(written or "")
    if found is None:
        return False
    name = (found[1] or found[2]).lower()
    return name in hosts or (ANY_ADDRESS in hosts and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
