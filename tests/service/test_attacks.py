"""What strangers try over a real connection: the right status, nothing counted, nothing shown, nothing logged."""

import re
import socket
from collections.abc import Iterator

import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import Client, binary, draft, plain_app, serving
from tests.service.waiting import PATIENT_SECONDS

from tacit.collector.server import make_app
from tacit.dashboard import routes
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.problems import TYPE_PREFIX
from tacit.wire.batch import MEDIA_TYPE

PLAIN_GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A collector with its pages."""
    with serving(make_app(MemoryStore(), pages=routes)) as made:
        yield made


@pytest.fixture(scope="module")
def collection(client: Client) -> str:
    return client.publish(draft(title="Attacked"))


def exchange(client: Client, data: bytes, patience: float = PATIENT_SECONDS) -> bytes:
    """Send raw bytes and read until the server hangs up, or patience ends."""
    address = client.http.base_url
    with socket.create_connection((address.host, address.port), timeout=patience) as connection:
        received = b""
        try:
            connection.sendall(data)
            while part := connection.recv(1 << 16):
                received += part
        except (TimeoutError, ConnectionError):
            pass
        return received


def statuses(reply: bytes) -> list[int]:
    """The status of every response on a connection."""
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", reply)]


def post(collection: str, headers: bytes, body: bytes) -> bytes:
    head = f"POST /c/{collection}/reports HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {MEDIA_TYPE}\r\n"
    return head.encode() + headers + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


SMUGGLED = b"GET /api/v1/tokens HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: %d\r\nContent-Length: 3",
        b"Content-Length: %d\r\nContent-Length: %d",
        b"Content-Length: %d, %d",
        b"Content-Length: +%d",
        b"Content-Length: -%d",
        b"Content-Length: 0x%d",
        b"Content-Length: %d\0",
        b"Content-Length: 99999999999999999999999999",
        b"Content-Length: %d\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: %d",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\nContent-Length: %d",
        b"X: a\r\n Content-Length: %d",
        b"X: a\rContent-Length: %d",
        b"X: a\nContent-Length: %d",
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_requests_of_two_meanings_have_none(client: Client, collection: str, headers: bytes, chunked: bool):
    before = client.status(collection)["reports"]
    body = binary(collection, bytes([1]))
    length = len(chunk(body) + chunk(b"")) if chunked else len(body)
    stated = headers % ((length,) * headers.count(b"%d"))
    reply = exchange(client, post(collection, stated, chunk(body) + chunk(b"") if chunked else body) + SMUGGLED)
    # One refusal, and the connection is over: what follows is never taken for a request of its own.
    assert statuses(reply) == [400]
    assert client.status(collection)["reports"] == before


def test_what_follows_a_whole_request_is_the_next_one(client: Client, collection: str):
    before = client.status(collection)["reports"]
    bodies = [binary(collection, bytes([i])) for i in range(2)]
    whole = [post(collection, b"Content-Length: %d" % len(body), body) for body in bodies]
    pieces = [post(collection, b"Transfer-Encoding: chunked", chunk(body[:9]) + chunk(body[9:]) + chunk(b""))
              for body in bodies]  # fmt: skip
    for requests, status in ((whole, 201), (pieces, 200)):
        requests[0] = requests[0].replace(b"Connection: close\r\n", b"")
        assert statuses(exchange(client, b"".join(requests))) == [status, status]
    assert client.status(collection)["reports"] == before + 2


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(60),  # TLS on a plain port
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
        b"get /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"STEAL /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /c/\0/document.json HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: x\n\n",
        PLAIN_GET + b"X: a\0b\r\n\r\n",
        PLAIN_GET + b"X\xff: a\r\n\r\n",
        PLAIN_GET + b": a\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_over(client: Client, data: bytes):
    assert statuses(exchange(client, data)) == [400]


@pytest.mark.parametrize("line", [b"X: " + b"a" * 1000, b"X: a"])
def test_heads_without_an_end_are_cut_off(client: Client, line: bytes):
    address = client.http.base_url
    with socket.create_connection((address.host, address.port), timeout=PATIENT_SECONDS) as connection:
        sent = 0
        try:
            connection.sendall(PLAIN_GET)
            while sent < 64 << 20:
                sent += connection.send((line + b"\r\n") * 100)
        except ConnectionError:
            pass
    assert sent < 16 << 20
    assert client.http.get("/healthz").status_code == 200


PATHS = [
    "/c/../api/v1/tokens",
    "/c/%2e%2e/api/v1/tokens",
    "/c/{id}/../../api/v1/tokens",
    "/c/{id}%2freports",
    "/c/{id}%2f..%2f{id}/reports",
    "/c/{id}/reports/",
    "/c/{id}//reports",
    "/c/{id};x=1/reports",
    "/c/{id}%00/reports",
    "/c/%00/document.json",
    "/c/{id}%0d%0aX-Injected:%201/document.json",
    "/C/{id}/reports",
    "/c/{upper}/reports",
    "/c/{id}%20/reports",
    "/c/%ff%fe/reports",
    "/c/%/reports",
    "/api/v1/collections/%2e%2e%2ftokens",
    "/api/v1/collections/{id}%2f..",
    "//api/v1/tokens",
    "/api/v1//tokens",
    "/api/v1/tokens/..%2f..%2f",
    "/static/../pages.py",
    "/static/%2e%2e/pages.py",
    "/static/..%2fpages.py",
    "/static/..%5cpages.py",
    "/static//etc/passwd",
    "/static/%00",
    "/static/vendor/..%2f..%2f..%2fpages.py",
    "/js/src/..%2f..%2fpackage.json",
    "/js/src/%2e%2e/%2e%2e/README.md",
    "/dashboard/../openapi.json",
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_paths_lead_nowhere_else(client: Client, collection: str, path: str, method: str):
    """Raw, since clients tidy paths up before they send them."""
    before = client.status(collection)["reports"]
    body = binary(collection, bytes([1])) if method == "POST" else b""
    given = path.format(id=collection, upper=collection.upper())
    lines = ["Host: x", "Connection: close", f"Content-Type: {MEDIA_TYPE}", f"Content-Length: {len(body)}", "", ""]
    reply = exchange(client, "\r\n".join([f"{method} {given} HTTP/1.1", *lines]).encode("latin-1") + body)
    if path == "/c/{id}%2freports" and method == "POST":
        # An encoded slash is a slash here, as it is for most servers: the same route, the same rules.
        assert statuses(reply) == [201]
        return
    assert statuses(reply)[0] in (400, 401, 404, 405), reply[:200]
    assert b"x-injected" not in reply.lower().partition(b"\r\n\r\n")[0]
    assert b"import " not in reply
    assert b"root:" not in reply
    assert client.status(collection)["reports"] == before


def test_redirections_cannot_be_given_further_headers(client: Client):
    reply = exchange(
        client, b"GET /dashboard/collections/%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    head = reply.partition(b"\r\n\r\n")[0].lower()
    assert statuses(reply) == [303]
    assert b"set-cookie" not in [line.partition(b":")[0] for line in head.split(b"\r\n")]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "GET", "HEAD", "PROPFIND", "SEARCH"])
def test_other_methods_store_nothing(client: Client, collection: str, method: str):
    before = client.status(collection)["reports"]
    body = binary(collection, bytes([1]))
    given = post(collection, b"Content-Length: %d" % len(body), body).replace(b"POST", method.encode(), 1)
    assert statuses(exchange(client, given)) == [405]
    overridden = client.http.get(f"/c/{collection}/reports", headers={"X-HTTP-Method-Override": "POST"})
    assert overridden.status_code == 405
    assert client.status(collection)["reports"] == before


def test_methods_cannot_be_overridden_into_the_api(client: Client):
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        made = client.api("POST", "/collections", draft()).json()["id"]
        headers = {"Authorization": f"Bearer {client.token}", name: "DELETE"}
        assert client.http.get(f"/api/v1/collections/{made}", headers=headers).status_code == 200
        assert client.api("GET", f"/collections/{made}?_method=DELETE").status_code == 200
        assert client.api("GET", f"/collections/{made}").status_code == 200


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "TLS/1.3"])
def test_upgrades_are_not_followed(client: Client, upgrade: str):
    reply = exchange(client, PLAIN_GET + f"Upgrade: {upgrade}\r\nConnection: Upgrade, close\r\n\r\n".encode())
    assert statuses(reply) == [200]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer tct_" + "A" * 43,
        "Bearer tct_\u00ff\u00fe",
        "Bearer ' OR 1=1 --",
        "Bearer " + "x" * 20_000,
        "Basic dGN0Og==",
        "Digest tct_x",
        "Bearer {token} x",
        "Bearer {swapped}",
        "{token}",
    ],
)
def test_unknown_tokens_open_nothing(client: Client, given: str):
    text = given.format(token=client.token, swapped=client.token.swapcase())
    for method, path in (("GET", "/api/v1/tokens"), ("POST", "/api/v1/collections"), ("GET", "/api/v1/audit")):
        reply = client.http.request(method, path, headers={"Authorization": text.encode("latin-1")})
        assert reply.status_code == 401
        assert reply.json()["type"] == TYPE_PREFIX + "unauthorized"
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert client.token not in reply.text


def test_expired_and_revoked_tokens_end_everywhere():
    day = [20_000]
    limits, clock = Limits(requests_per_second=0.001, burst=1), Clock(day=lambda: day[0])
    app = plain_app(limits=limits, clock=clock)
    with serving(app) as client:
        mine = client.publish(draft())
        made = {
            scope: client.api("POST", "/tokens", {"scope": scope, "collection": mine, "days": 1}).json()
            for scope in ("analyst", "reader", "reporter")
        }
        path = f"/api/v1/collections/{mine}/status"
        held = {scope: token["token"] for scope, token in made.items()}
        readers = [{"Authorization": f"Bearer {held['analyst']}"}, {"Cookie": f"tacit_session={held['analyst']}"}]
        assert [client.http.get(path, headers=headers).status_code for headers in readers] == [200, 200]
        assert client.http.get(path, params={"share": held["reader"]}).status_code == 200
        as_reporter = {"Authorization": f"Bearer {held['reporter']}"}
        sent = [client.send(mine, binary(mine, bytes([1])), **as_reporter).status_code for _ in range(3)]
        assert sent == [201, 201, 201]
        day[0] += 1
        assert [client.http.get(path, headers=headers).status_code for headers in readers] == [401, 401]
        assert client.http.get(path, params={"share": held["reader"]}).status_code == 401
        # Anybody may report; without a valid token at the rate of anybody.
        assert client.send(mine, binary(mine, bytes([1])), **as_reporter).status_code == 429
        day[0] -= 1
        client.api("DELETE", f"/tokens/{made['analyst']['id']}")
        assert [client.http.get(path, headers=headers).status_code for headers in readers] == [401, 401]


def test_a_forged_forwarding_header_is_nobodys_address():
    with serving(plain_app(limits=Limits(requests_per_second=0.001, burst=2))) as client:
        mine = client.publish(draft())
        forged = [{"X_Forwarded_For": f"192.0.2.{i}", "Forwarded": f"for=192.0.2.{i}"} for i in range(4)]
        sent = [client.send(mine, binary(mine, bytes([1])), **headers).status_code for headers in forged]
        assert sent == [201, 201, 429, 429]


@pytest.mark.parametrize(
    "media_type",
    [
        "", "text/html", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json+x",
        "application/octet-stream", "application/vnd.tacit.batch2", "text/plainx", "json", ";", "\u00ff", "a" * 5000,
    ],
)  # fmt: skip
def test_wrong_content_types_are_refused_before_anything_is_read(client: Client, collection: str, media_type: str):
    kept = client.status(collection)
    reply = client.http.post(
        f"/c/{collection}/reports",
        content=binary(collection, bytes([1])),
        headers={"Content-Type": media_type.encode("latin-1")},
    )
    assert (reply.status_code, reply.json()["type"]) == (415, TYPE_PREFIX + "unsupported_media_type")
    assert client.status(collection) == kept
    if media_type not in ("", "a" * 5000):
        headers = {"Authorization": f"Bearer {client.token}", "Content-Type": media_type.encode("latin-1")}
        assert client.http.post("/api/v1/plan", content=b"{}", headers=headers).status_code == 415


def test_a_batch_of_the_wrong_form_is_not_guessed(client: Client, collection: str):
    before = client.status(collection)["reports"]
    body = binary(collection, bytes([1]))
    assert client.send(collection, body, "application/json").status_code == 400
    # Plain text is either form, which its first bytes tell.
    assert client.send(collection, b" " + body, "text/plain").status_code == 400
    assert client.send(collection, b'{"collection":""}').status_code == 400
    assert client.status(collection)["reports"] == before


def test_markup_in_documents_stays_text(client: Client):
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    question = {"name": "pet", "text": evil, "domain": {"kind": "categories", "labels": [evil, "</title>"]}}
    mine = client.publish(draft(title=evil, about=evil, questions=[question]))
    for path in (f"/c/{mine}", f"/c/{mine}/privacy"):
        page = client.http.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "script-src" not in page.headers["content-security-policy"]  # default-src 'self' governs it
        assert "unsafe" not in page.headers["content-security-policy"]
