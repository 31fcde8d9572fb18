"""People sign in through an OpenID Connect provider, and become bearers of tokens with a scope and a team."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.service.memory import MemoryStore
from tests.service.oidc_provider import SECRET, TinyProvider, providing
from tests.service.plain import http_client, plain_app

from tacit.collector.collections.access import SIGNED_IN, Access
from tacit.collector.server import running
from tacit.dashboard import routes
from tacit.dashboard.oidc import ATTEMPT, Provider
from tacit.dashboard.session import COOKIE
from tacit.dashboard.sign_in import GroupRule, SignIn
from tacit.errors import InvalidSpec

RULES = (
    GroupRule("heads", "admin"),
    GroupRule("cn=staff,dc=zoo", "analyst", "zoo"),
    GroupRule("staff", "admin", "zoo"),
)


@pytest.fixture(scope="module")
def provider() -> Iterator[TinyProvider]:
    with providing(TinyProvider()) as found:
        yield found


@contextmanager
def collecting(provider: TinyProvider, **changes: Any) -> Generator[tuple[httpx.Client, Any]]:
    """A collector whose people sign in with a provider, and a browser without scripts."""
    settings = SignIn(provider.url, "tacit", RULES, **{"client_secret": SECRET} | changes)
    app = plain_app(MemoryStore(), pages=partial(routes, sign_in=settings))
    with running(app) as server, http_client(server.url) as http:
        provider.redirect = f"{server.url}/dashboard/oidc/callback"
        yield http, app


@pytest.fixture
def site(provider: TinyProvider) -> Iterator[tuple[httpx.Client, Any]]:
    fresh = TinyProvider.__dataclass_fields__
    for name in ("claims", "userinfo", "altered"):
        setattr(provider, name, fresh[name].default_factory())
    provider.foreign_key = provider.public = False
    with collecting(provider) as found:
        yield found


def sign_in(http: httpx.Client, target: str = "/dashboard") -> httpx.Response:
    """Go to the provider and back, as far as the answer of the callback."""
    there = http.get("/dashboard/oidc/start", params={"next": target})
    assert there.status_code == 303, there.text
    back = httpx.get(there.headers["location"], verify=False)
    assert back.status_code == 302, back.text
    return http.get(back.headers["location"])


def test_a_member_of_a_group_gets_its_scope_and_team(site: Any, provider: TinyProvider) -> None:
    http, app = site
    assert "Sign in with single sign-on" in http.get("/dashboard/login").text
    done = sign_in(http, "/dashboard/tokens")
    assert done.status_code == 200 and 'content="0;url=/dashboard/tokens"' in done.text
    cookie = next(line for line in done.headers.get_list("set-cookie") if line.startswith(COOKIE))
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    assert ATTEMPT not in http.cookies
    (record,) = app.collector.access.tokens()
    assert (record.scope, record.team, record.label) == ("admin", "zoo", "ada@example.org" + SIGNED_IN)
    assert "Team zoo" in http.get("/dashboard").text
    assert http.get("/api/v1/audit").json()["entries"][0]["action"] == "sign in"
    # Signing out ends the token itself, and not only the cookie.
    token = http.cookies[COOKIE]
    assert http.post("/dashboard/logout").status_code == 303
    assert app.collector.access.bearer(token) is None


def test_the_first_rule_that_fits_decides_and_groups_may_come_from_another_place(
    site: Any, provider: TinyProvider
) -> None:
    http, app = site
    provider.claims = {"sub": "2", "preferred_username": "bo\nb"}
    provider.userinfo = {"sub": "2", "groups": ["staff", "heads"]}
    assert sign_in(http).status_code == 200
    (record,) = app.collector.access.tokens()
    assert (record.scope, record.team, record.label) == ("admin", "", "bob" + SIGNED_IN)


def test_who_is_in_no_group_stays_outside(site: Any, provider: TinyProvider) -> None:
    http, app = site
    provider.claims["groups"] = "visitors"
    done = sign_in(http)
    assert done.status_code == 401 and "is in no group" in done.text
    assert not app.collector.access.tokens() and COOKIE not in http.cookies


WRONG: dict[str, dict[str, Any]] = {
    "another audience": {"aud": "somebody"},
    "several audiences and another party": {"aud": ["tacit", "somebody"], "azp": "somebody"},
    "another issuer": {"iss": "https://elsewhere.example"},
    "another nonce": {"nonce": "of an earlier sign-in"},
    "expired": {"exp": 1_000_000},
    "no end": {"exp": None},
    "nobody": {"sub": None},
}


@pytest.mark.parametrize("altered", WRONG.values(), ids=list(WRONG))
def test_a_wrong_id_token_is_refused(site: Any, provider: TinyProvider, altered: dict[str, Any]) -> None:
    http, app = site
    provider.altered = altered
    done = sign_in(http)
    assert done.status_code == 401 and "You were not signed in" in done.text
    assert not app.collector.access.tokens()


def test_a_token_that_another_key_signed_is_refused(site: Any, provider: TinyProvider) -> None:
    provider.foreign_key = True
    assert "not valid" in sign_in(site[0]).text


def test_an_answer_is_good_for_one_browser_and_once(site: Any, provider: TinyProvider) -> None:
    http, app = site
    location = http.get("/dashboard/oidc/start").headers["location"]
    asked = parse_qs(urlsplit(location).query)
    assert asked["code_challenge_method"] == ["S256"] and len(asked["state"][0]) >= 43 and asked["nonce"]
    back = httpx.get(location, verify=False).headers["location"]
    with http_client(str(http.base_url)) as other:
        # Somebody else's browser has not begun this sign-in: nobody can be signed in under a foreign account.
        assert "begin again" in other.get(back).text
    wrong = back.replace("state=", "state=x")
    assert "does not belong" in http.get(wrong).text
    assert provider.exchanged == 0 or not app.collector.access.tokens()
    # The attempt was forgotten with the first answer.
    assert "begin again" in http.get(back).text


def test_a_refusal_of_the_provider_is_told(site: Any) -> None:
    http, _ = site
    location = http.get("/dashboard/oidc/start").headers["location"]
    state = parse_qs(urlsplit(location).query)["state"][0]
    done = http.get("/dashboard/oidc/callback", params={"error": "access_denied", "state": state})
    assert done.status_code == 401 and "access_denied" in done.text


def test_clients_without_a_secret_and_with_a_wrong_one(provider: TinyProvider) -> None:
    provider.public = True
    with collecting(provider, client_secret="") as (http, app):
        assert sign_in(http).status_code == 200 and len(app.collector.access.tokens()) == 1
    provider.public = False
    with collecting(provider, client_secret="another") as (http, app):
        done = sign_in(http)
        assert done.status_code == 401 and "did not exchange" in done.text and "another" not in done.text


def test_a_provider_that_is_not_there_and_one_under_another_name(provider: TinyProvider) -> None:
    with collecting(provider) as (http, app):
        gone = Provider(SignIn("http://127.0.0.1:9", "tacit", RULES))
        other = Provider(SignIn(provider.url + "/", "tacit", RULES))
        for found, words in ((gone, "cannot be reached"), (other, "another name")):
            with pytest.raises(Exception, match=words):
                found.begin("http://127.0.0.1/x", "/dashboard")
        del http, app


def test_nobody_is_led_to_another_site(site: Any) -> None:
    assert "evil.example" not in sign_in(site[0], "//evil.example/dashboard").text


def test_without_a_provider_there_is_no_such_page() -> None:
    app = plain_app(MemoryStore(), pages=routes)
    with running(app) as server, http_client(server.url) as http:
        assert http.get("/dashboard/oidc/start", headers={"accept": "text/html"}).status_code == 404
        assert "single sign-on" not in http.get("/dashboard/login").text


def test_expired_tokens_of_sign_ins_are_removed_and_others_stay() -> None:
    days = [100]
    access = Access(MemoryStore(), lambda: days[0])
    access.create("analyst", days=1)
    first = access.sign_in("ada", "analyst", "")
    days[0] = 102
    access.sign_in("bob", "analyst", "")
    assert access.bearer(first) is None
    assert [record.label for record in access.tokens()] == ["", "bob" + SIGNED_IN]


@pytest.mark.parametrize("text", ["staff", "staff=reader", "=admin", "staff=admin:Zoo", "staff=root"])
def test_rules_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidSpec):
        GroupRule.parse(text)


def test_rules_and_settings() -> None:
    assert RULES[1] == GroupRule("cn=staff,dc=zoo", "analyst", "zoo")
    assert "hidden" not in repr(SignIn("https://id.example", "tacit", RULES, "hidden"))
    for changes in ({"issuer": "http://id.example"}, {"rules": ()}, {"client_id": ""}, {"scopes": "profile"}):
        with pytest.raises(InvalidSpec, match="oidc"):
            SignIn(**{"issuer": "https://id.example", "client_id": "x", "rules": RULES} | changes)
