"""The public address: what QR codes, links and snippets say when a proxy is in front of the collector."""

import io
import re
from functools import partial
from pathlib import Path

import httpx
import pytest
import segno
from click.testing import CliRunner
from tests.service.memory import MemoryStore
from tests.service.plain import Client, draft, serving

from tacit.cli import cli
from tacit.collector.server import Settings, make_app
from tacit.dashboard import COOKIE, routes
from tacit.errors import InvalidSpec
from tacit.hosting.addresses import public_address

PUBLIC = "https://survey.example.org"


@pytest.fixture(scope="module")
def client():
    with serving(make_app(MemoryStore(), pages=partial(routes, public_url=PUBLIC))) as made:
        yield made


def picture(address: str) -> bytes:
    """The QR code of an address, as the collector draws it."""
    image = io.BytesIO()
    segno.make(address, error="m").save(image, kind="svg", scale=4, border=4, light="#ffffff", nl=False)
    return image.getvalue()


def seen(client: Client, path: str, **headers: str) -> str:
    """A page of the dashboard, signed in."""
    return client.http.get(path, headers={"Cookie": f"{COOKIE}={client.token}", **headers}).text


def test_codes_links_and_snippets_have_the_public_address(client: Client):
    mine = client.publish(draft(title="Posters"))
    assert client.http.get(f"/c/{mine}/qr.svg").content == picture(f"{PUBLIC}/c/{mine}")
    page = seen(client, f"/dashboard/collections/{mine}")
    # The link, the snippet and the invitations of this page are all made from this one address.
    assert re.findall(r'data-address="([^"]*)"', page) == [f"{PUBLIC}/c/{mine}"]
    assert re.findall(r'data-site="([^"]*)"', seen(client, "/dashboard/tokens")) == [PUBLIC]


def test_a_forged_host_changes_nothing_that_is_printed(client: Client):
    mine = client.publish(draft(title="Forged"))
    forged = {"Host": "evil.example"}
    assert client.http.get(f"/c/{mine}/qr.svg", headers=forged).content == picture(f"{PUBLIC}/c/{mine}")
    assert "evil" not in seen(client, f"/dashboard/collections/{mine}", **forged)


def test_without_one_the_address_is_where_the_request_came_in():
    with serving(make_app(MemoryStore(), pages=routes)) as client:
        mine = client.publish(draft())
        here = str(client.http.base_url).rstrip("/")
        assert client.http.get(f"/c/{mine}/qr.svg").content == picture(f"{here}/c/{mine}")
        assert f'data-address="{here}/c/{mine}"' in seen(client, f"/dashboard/collections/{mine}")


@pytest.mark.parametrize(("host", "secure"), [("survey.example.org", True), ("127.0.0.1:8000", False)])
def test_the_session_cookie_is_for_tls_alone_where_tls_is(client: Client, host: str, secure: bool):
    reply = client.http.post("/dashboard/login", data={"token": client.token}, headers={"Host": host})
    assert reply.status_code == 303
    cookie = reply.headers["set-cookie"].lower()
    assert ("; secure" in cookie) is secure
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("https://example.org", "https://example.org"),
        ("https://Example.org/", "https://example.org"),
        ("http://10.0.0.7:8080", "http://10.0.0.7:8080"),
        ("http://[2001:db8::1]:80/", "http://[2001:db8::1]:80"),
    ],
)
def test_good_addresses(given: str, kept: str):
    assert public_address(given) == kept
    assert Settings(public_url=given).url == (kept or "http://127.0.0.1:8000")


@pytest.mark.parametrize(
    "given",
    [
        "example.org",
        "ftp://example.org",
        "javascript:alert(1)",
        "//example.org",
        "https://",
        "https:///c",
        "https://example.org?x=1",
        "https://example.org/?",
        "https://example.org/#x",
        "https://example.org/tacit",  # Scripts are named from the root.
        "https://user:secret@example.org",
        "https://example.org:99999",
        "https://example.org:x",
        "https://example.org:0",
        "https://example.org:",
        'https://example.org"><script>',
        "https://example.org /",
        "https://ex\u00e4mple.org",
        "https://[::1",
        "https://-example.org",
    ],
)
def test_bad_addresses_are_refused_at_the_start(given: str):
    with pytest.raises(InvalidSpec, match="public_url"):
        Settings(public_url=given)


def test_the_command_line_passes_it_on(tmp_path: Path):
    started = []
    run = partial(CliRunner().invoke, cli, obj=lambda *given: started.append(given))
    done = run(["serve", "--data", str(tmp_path), "--public-url", f"{PUBLIC}/"])
    assert done.exit_code == 0, done.output
    ((settings, _, pages),) = started
    assert settings.url == PUBLIC
    with serving(make_app(MemoryStore(), pages=pages)) as client:
        mine = client.publish(draft())
        assert client.http.get(f"/c/{mine}/qr.svg").content == picture(f"{PUBLIC}/c/{mine}")
    refused = run(["serve", "--data", str(tmp_path), "--public-url", "example.org"])
    assert isinstance(refused.exception, InvalidSpec)
    assert len(started) == 1


def test_the_survey_is_answered_where_it_was_opened(client: Client):
    """The page sends reports to its own origin, so the public address needs no origin in the document."""
    mine = client.publish(draft(title="Own origin"))
    response: httpx.Response = client.http.get(f"/c/{mine}")
    assert response.status_code == 200
    assert PUBLIC not in response.text
