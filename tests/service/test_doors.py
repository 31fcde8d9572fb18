"""Every door: which token may use which route, and what requests with odd heads and bodies are answered."""

from __future__ import annotations

import http.client
import itertools
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Mount, Route
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, serving
from tests.service.test_attacks import exchange, statuses
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.http.app import App
from tacit.collector.server import make_app
from tacit.dashboard import COOKIE, routes
from tacit.hosting.limits import Limits
from tacit.wire.batch import MEDIA_TYPE

SECRET = "Nobody else knows of this draft"


@pytest.fixture(scope="module")
def app() -> App:
    return make_app(MemoryStore(), Limits(requests_per_second=0, body_bytes=100_000), pages=routes)


@pytest.fixture(scope="module")
def client(app: App) -> Iterator[Client]:
    with serving(app) as client:
        yield client


def secret_draft(client: Client) -> str:
    return client.api("POST", "/collections", draft(title=SECRET)).json()["id"]


def every_route(app: App) -> list[tuple[str, str]]:
    """Method and path of every route that is about one collection."""
    found = [route for route in app._site.routes if isinstance(route, Route)]  # type: ignore[attr-defined]
    assert not [route for route in app._site.routes if not isinstance(route, Route | Mount)]  # type: ignore[attr-defined]
    pairs = [(method, route.path) for route in found for method in sorted(route.methods or ())]
    return [(method, path) for method, path in pairs if "{id}" in path and method not in ("HEAD", "OPTIONS")]


@pytest.mark.parametrize("together", [1, pytest.param(3, marks=pytest.mark.slow)], ids=["in turn", "all"])
def test_a_token_of_one_collection_sees_nothing_of_another_draft(app: App, client: Client, together: int):
    """All routes that name a collection, by header, cookie and share link (in turn, or all of them), with every token
    that is not for it."""
    mine, other = client.publish(draft(title="Mine")), secret_draft(client)
    held = [
        client.api("POST", "/tokens", {"scope": scope, "collection": mine}).json()["token"]
        for scope in ("admin", "analyst", "reader", "reporter")
    ]
    walked = every_route(app)
    assert len(walked) > 25
    for turn, ((method, path), token) in enumerate(itertools.product(walked, ["", *held])):
        address = path.replace("{id}", other).replace("{question}", "pet").replace("{query}", "ranking")
        ways: list[dict[str, Any]] = [
            {"headers": {"Authorization": f"Bearer {token}"} if token else {}},
            {"headers": {"Cookie": f"{COOKIE}={token}", "Tacit-CSRF": "1"}},
            {"params": {"share": token}},
        ]
        for way in (ways * 2)[turn % 3 :][:together]:
            reply = client.http.request(method, address, **way)
            assert SECRET not in reply.text, (method, path, way)
            assert reply.status_code in (303, 400, 401, 403, 404, 409, 422), (method, path, way, reply.status_code)
    assert client.api("GET", f"/collections/{other}").status_code == 200


def test_whoever_may_change_a_draft_sees_its_preview(client: Client):
    own = secret_draft(client)
    cookie = {"Cookie": f"{COOKIE}={client.token}"}
    bound = client.api("POST", "/tokens", {"scope": "admin", "collection": own}).json()["token"]
    for headers in (cookie, {"Cookie": f"{COOKIE}={bound}"}):
        assert SECRET in client.http.get(f"/c/{own}", headers=headers).text
        assert SECRET in client.http.get(f"/c/{own}/preview.json", headers=headers).text
    analyst = client.api("POST", "/tokens", {"scope": "analyst"}).json()["token"]
    assert client.http.get(f"/c/{own}/preview.json", headers={"Cookie": f"{COOKIE}={analyst}"}).status_code == 404


def test_codes_are_drawn_for_collections_alone_and_for_hosts_that_are_some(client: Client):
    mine = client.publish(draft(title="Posters"))
    assert client.http.get(f"/c/{mine}/qr.svg").status_code == 200
    assert client.http.get(f"/c/{'0' * 64}/qr.svg").status_code == 404
    assert client.http.get(f"/c/{secret_draft(client)}/qr.svg").status_code == 404
    longest = "a" * 253
    assert client.http.get(f"/c/{mine}/qr.svg", headers={"Host": longest}).status_code == 200


@pytest.mark.parametrize(
    "lines",
    [
        b"",  # no host
        b"Host:\r\n",  # an empty one
        b"Host: a\r\nHost: b\r\n",  # two
        b"Host: a\r\nHost: a\r\n",
        b"Host: " + b"a" * 3000 + b"\r\n",  # none that exists
        b"Host: a/b\r\n",
        b"Host: a@b\r\n",
        b"Host: a b\r\n",
        b'Host: "><script>\r\n',
        b"Host: a:123456\r\n",
        b"Host: a:99999\r\n",
        b"Host: a:65536\r\n",
        b"Host: \t \r\n",
        b"Host: [::1\r\n",
    ],
)
def test_a_request_names_one_host(client: Client, lines: bytes):
    reply = exchange(client, b"GET /healthz HTTP/1.1\r\n" + lines + b"\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert statuses(reply) == [400] and b"application/problem+json" in reply


WRITTEN = [b"Example.ORG.", b"a:65535", b"example.com:", b"[::1]:", b"  x", b"x \t", b"\t x:80 "]


@pytest.mark.parametrize("host", [b"x", b"my_app:8000", b"127.0.0.1:80", b"[::1]:8000", *WRITTEN])
def test_hosts_that_are_some(client: Client, host: bytes):
    head = b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n"
    assert statuses(exchange(client, head)) == [200]


def test_old_clients_need_not_name_a_host(client: Client):
    assert statuses(exchange(client, b"GET /healthz HTTP/1.0\r\n\r\n")) == [200]


@pytest.mark.parametrize("length", [b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c", b"foo"])
def test_an_upgrade_with_a_body_is_refused_and_its_body_is_no_request(client: Client, upgrade: bytes, length: bytes):
    inner = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"POST /api/v1/plan HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + b"\r\n"
    head += (length % len(inner) if b"%" in length else length) + b"\r\n"
    for data in (head + inner, head):
        reply = exchange(client, data, 1.0) if data is not head else in_two(client, head, inner)
        assert statuses(reply) == [400]


def in_two(client: Client, first: bytes, second: bytes) -> bytes:
    """What is answered to data whose second half comes later."""
    address = (client.http.base_url.host, client.http.base_url.port)
    with socket.create_connection(address, timeout=PATIENT_SECONDS) as link:
        link.sendall(first)
        data = link.recv(4096)
        try:
            link.sendall(second)
            data += link.recv(4096)
        except OSError:
            pass
        return data


def test_refusals_of_methods_say_which_are_allowed(app: App, client: Client):
    mine = client.publish(draft(title="Methods"))
    for path, allowed in {
        f"/c/{mine}/reports": {"POST", "OPTIONS"},
        f"/c/{mine}/document.json": {"GET", "HEAD", "OPTIONS"},
        "/healthz": {"GET", "HEAD"},
        f"/api/v1/collections/{mine}": {"GET", "HEAD", "PUT", "DELETE"},
        "/api/v1/tokens": {"GET", "HEAD", "POST"},
        f"/api/v1/collections/{mine}/query": {"GET", "HEAD", "POST"},
        "/dashboard/login": {"GET", "HEAD", "POST"},
        "/dashboard/logout": {"POST"},
        f"/c/{mine}/privacy": {"GET", "HEAD"},
    }.items():
        for method in {"GET", "PATCH"} - allowed:
            reply = client.http.request(method, path)
            assert reply.status_code == 405 and set(reply.headers["allow"].split(", ")) == allowed, path
    for method, path in itertools.product(("GET", "PATCH"), ("/dashboard/nowhere", "/c/a/nowhere")):
        assert client.http.request(method, path).status_code == 404


def test_a_document_that_the_client_has_is_not_sent_again(client: Client):
    mine = client.publish(draft(title="Etag"))
    path = f"/c/{mine}/document.json"
    etag = client.http.get(path).headers["etag"]
    for given in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        reply = client.http.get(path, headers={"If-None-Match": given})
        assert (reply.status_code, reply.content) == (304, b"")
        assert reply.headers["etag"] == etag and "immutable" in reply.headers["cache-control"]
    assert client.http.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


LARGE = b"x" * 3_000_000
REFUSED = [
    ("/c/{id}/reports", {"Content-Type": MEDIA_TYPE}, 413),
    ("/c/{id}/reports", {"Content-Type": "image/png"}, 415),
    ("/api/v1/plan", {"Content-Type": "application/json"}, 401),
    ("/api/v1/plan", {"Content-Type": "application/json", "Authorization": "{token}"}, 413),
    ("/dashboard/login", {}, 413),
    ("/nowhere", {}, 404),
]


@pytest.mark.parametrize(("path", "headers", "status"), REFUSED)
def test_clients_that_write_everything_first_see_why_they_were_refused(
    client: Client, path: str, headers: dict[str, str], status: int
):
    mine = client.publish(draft(title="Large"))
    sent = {name: value.replace("{token}", f"Bearer {client.token}") for name, value in headers.items()}
    address = path.replace("{id}", mine)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(str(client.http.base_url.join(address)), LARGE, sent))
    with caught.value as error:
        assert error.code == status
    link = http.client.HTTPConnection(client.http.base_url.host, client.http.base_url.port, timeout=PATIENT_SECONDS)
    for _ in range(2):  # The connection can be used again.
        link.request("POST", address, LARGE, sent)
        answer = link.getresponse()
        assert answer.status == status and answer.read()
    link.request("POST", address, iter([LARGE[:1_000_000]] * 3), sent, encode_chunked=True)
    assert link.getresponse().status == status
    link.close()


def test_bodies_without_end_are_not_drained():
    with serving(make_app(MemoryStore(), Limits(body_bytes=1000, drain_bytes=100_000))) as client:
        mine = client.publish(draft())
        head = f"POST /c/{mine}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n"
        data = f"{head}Content-Type: {MEDIA_TYPE}\r\n\r\n".encode() + b"x" * 400_000
        reply = exchange(client, data)
        assert statuses(reply) in ([413], [])  # The answer may be lost with the connection, which ends.
        expecting = f"{head}Content-Type: {MEDIA_TYPE}\r\nExpect: 100-continue\r\n\r\n".encode()
        assert statuses(exchange(client, expecting)) == [413]


LOGIN = [
    ({"Origin": "https://evil.example"}, False),
    ({"Origin": "null"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "same-site", "Origin": "{here}"}, False),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "{here}"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Origin": "{here}"}, True),
    ({}, True),
]


@pytest.mark.parametrize(("headers", "ours"), LOGIN)
def test_forms_of_other_sites_sign_nobody_in_or_out(client: Client, headers: dict[str, str], ours: bool):
    here = str(client.http.base_url).rstrip("/")
    sent = {name: value.replace("{here}", here) for name, value in headers.items()}
    cookie = {"Cookie": f"{COOKIE}={client.token}"}
    signed = client.http.post("/dashboard/login", data={"token": client.token}, headers=sent)
    out = client.http.post("/dashboard/logout", headers=sent | cookie)
    assert (signed.status_code, out.status_code) == ((303, 303) if ours else (403, 403))
    assert ("set-cookie" in signed.headers, "set-cookie" in out.headers) == (ours, ours)


SAME_SITE = [
    ("Collector.Example:80", "http://collector.example", True),
    ("collector.example", "http://collector.example:80", True),
    ("collector.example:", "http://collector.example", True),
    ("collector.example:443", "https://collector.example", True),  # Behind a proxy that ends TLS.
    ("collector.example:8080", "http://collector.example", False),
    ("collector.example:80", "https://collector.example:8443", False),
    ("collector.example", "http://collector.example:99999", False),
    ("collector.example", "http://[", False),
]


@pytest.mark.parametrize(("host", "origin", "ours"), SAME_SITE)
def test_one_site_may_be_written_in_several_ways(client: Client, host: str, origin: str, ours: bool):
    sent = {"Host": host, "Origin": origin}
    signed = client.http.post("/dashboard/login", data={"token": client.token}, headers=sent)
    client.http.cookies.clear()
    assert signed.status_code == (303 if ours else 403)


def test_addresses_that_are_shown_have_the_host_without_blanks_and_empty_port(client: Client):
    mine = client.publish(draft(title="Shown"))
    head = f"GET /dashboard/collections/{mine} HTTP/1.1\r\nHost: shown.example: \r\nConnection: close\r\n"
    reply = exchange(client, f"{head}Cookie: {COOKIE}={client.token}\r\n\r\n".encode())
    assert f"http://shown.example/c/{mine}".encode() in reply and b"shown.example:" not in reply


def test_redirections_stay_where_they_are_whatever_the_host_says(client: Client):
    evil = {"Host": "evil.example"}
    for path in ("/", "/dashboard", "/dashboard/", "/dashboard/login/", "/healthz/", "/dashboard/tokens"):
        reply = client.http.get(path, headers=evil)
        assert reply.status_code in (303, 307) and reply.headers["location"].startswith("/"), path
        assert not reply.headers["location"].startswith("//") and "evil" not in reply.headers["location"]
    strange = b"GET //evil.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert statuses(exchange(client, strange)) == [404]


def test_reports_pass_all_this(client: Client, app: App):
    mine = client.publish(draft(title="Fine"))
    width = app.collector.find(mine).widths[0]
    assert client.send(mine, binary(mine, bytes(width), width=width)).status_code == 201
