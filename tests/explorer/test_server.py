"""The server itself: which hosts it answers to, and what unfinished requests do to others."""

import http.client
import socket
import time
from urllib.parse import urlsplit

import pytest

from selftrain.explorer.jobs import JobBoard
from selftrain.explorer.server import create_app, is_served, served_hosts


def asked(place, host, path="/"):
    """The status of a request whose Host is exactly this; None leaves it out."""
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        connection.putrequest("GET", path, skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_only_the_address_that_is_served_is_answered(address):
    place = urlsplit(address)
    for name in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST"):
        assert asked(place, f"{name}:{place.port}") == 200
        assert asked(place, name) == 200
    for name in ("evil.example", "localhost.evil.example", "evil.example#localhost", "", "a@b"):
        for path in ("/", "/_dash-layout", "/assets/visitor.js"):
            assert asked(place, f"{name}:{place.port}", path) in (400, 403), name
    assert asked(place, None) in (400, 403)
    assert asked(place, "192.168.0.7") == 403


def test_no_route_answers_a_foreign_host():
    client = create_app(None, JobBoard()).server.test_client()
    for path in ("/", "/answer", "/_dash-update-component", "/_dash-dependencies"):
        answered = client.post(path, json={}, headers={"Host": "evil.example:8050"})
        assert answered.status_code == 403
        assert "not served here" in answered.text


@pytest.mark.parametrize(
    ("host", "bound", "written", "served"),
    [
        ("127.0.0.1", "127.0.0.1", "localhost:8050", True),
        ("localhost", "127.0.0.1", "127.0.0.1:8050", True),
        ("127.0.0.5", "127.0.0.5", "127.0.0.5:8050", True),
        ("::1", "::1", "[::1]:8050", True),
        ("192.168.1.5", "192.168.1.5", "192.168.1.5:8050", True),
        ("192.168.1.5", "192.168.1.5", "192.168.1.6:8050", False),
        ("box.lan", "192.168.1.5", "BOX.lan", True),
        ("box.lan", "192.168.1.5", "192.168.1.5:9", True),
        ("box.lan", "192.168.1.5", "localhost", False),
        ("0.0.0.0", "0.0.0.0", "10.1.2.3:8050", True),
        ("0.0.0.0", "0.0.0.0", socket.gethostname() + ":8050", True),
        ("0.0.0.0", "0.0.0.0", "evil.example:8050", False),
        ("::", "::", "[fd00::7]:8050", True),
        ("::", "::", "[evil]:8050", False),
        ("127.0.0.1", "127.0.0.1", "[localhost", False),
        ("127.0.0.1", "127.0.0.1", "localhost:port", False),
        ("127.0.0.1", "127.0.0.1", None, False),
    ],
)
def test_the_hosts_of_a_server(host, bound, written, served):
    assert is_served(written, served_hosts(host, bound)) is served


def test_unfinished_requests_lock_nobody_out(address):
    """Two hundred connections send half a request each and then nothing."""
    place = urlsplit(address)
    half = f"POST /answer HTTP/1.1\r\nHost: localhost:{place.port}\r\nContent-Length: 999\r\n"
    others = []
    try:
        for i in range(200):
            other = socket.create_connection((place.hostname, place.port), timeout=60)
            other.sendall((half + ("" if i % 2 else '\r\n{"texts": ')).encode())
            others.append(other)
        time.sleep(0.5)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        begin = time.monotonic()
        connection.request("GET", "/_dash-layout")
        assert connection.getresponse().status == 200
        assert time.monotonic() - begin < 30
        connection.close()
    finally:
        for other in others:
            other.close()
