"""Documents of version 2: what they add to one of version 1, good and bad."""

from typing import Any

Case = tuple[str, Any]
Answered = tuple[str, Any, list[dict[str, Any]]]


def party(name: str, digit: str, url: str = "") -> dict[str, str]:
    """Somebody with a made-up key; a document pins keys and does not look whether they are points of the curve."""
    placed = {"url": url} if url else {}
    return {"name": name, "identity": digit * 64} | placed


COLLECTOR = party("Collector", "a")
FIRST = party("First", "1", "https://first.example")
SECOND = party("Zweiter, M\u00fcnchen", "2", "https://second.example:8443/shuffler/v1")
THIRD = party("Third \U0001f600", "3", "http://localhost:9000")
FOURTH = party("Fourth", "4", "https://first.example/other")
RELAY = {"name": "Relay", "url": "https://relay.example/r_1"}
RELAYED: dict[str, Any] = {
    "mode": "relay",
    "collector": COLLECTOR,
    "shufflers": [FIRST],
    "relay": RELAY,
    "minimum": 1000,
    "maximum": 100_000_000,
    "fakes": 0,
    "spot_checks": 0,
    "delta": "1e-9",
    "together": [],
}
THREE = [FIRST, SECOND, THIRD]
SHARED = RELAYED | {"mode": "osh", "shufflers": THREE, "relay": None, "fakes": 10, "spot_checks": 300}
LAYERED = SHARED | {"mode": "ss", "shufflers": [FIRST, SECOND], "delta": "2.5e-10", "minimum": 100, "maximum": 100}
TOGETHER = RELAYED | {"together": [["collector", "shuffler_1"]]}
PAIRED = SHARED | {"relay": RELAY, "together": [["collector", "shuffler_2"], ["relay", "shuffler_1", "shuffler_3"]]}
NINE = [party(f"S{i}", str(i), f"http://127.0.0.1:{8000 + i}") for i in range(1, 10)]


def second(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same in version 2, which adds three fields."""
    return document | {"version": 2, "shuffle": None, "windows": None, "account": None} | changes


def good(plain: dict[str, Any], words: dict[str, Any]) -> list[Answered]:
    """From a document with one question about three answers, and one with free text."""
    answers = [{"colour": "red"}, {"colour": "blue"}]
    return [
        ("version 2 that adds nothing", second(plain), answers),
        ("shuffled by a relay and one shuffler", second(plain, shuffle=RELAYED), answers),
        ("shuffled by sharing", second(plain, shuffle=SHARED, invitations=True), answers),
        ("shuffled in layers", second(plain, shuffle=LAYERED), answers),
        ("shuffled words of local hashing", second(words, shuffle=SHARED), [{"word": "caf\u00e9"}]),
        ("a collector that is its shuffler", second(plain, shuffle=TOGETHER), answers[:1]),
        ("parties with several roles", second(plain, shuffle=PAIRED | {"mode": "osh-z"}), answers[:1]),
        ("nine shufflers", second(plain, shuffle=SHARED | {"mode": "peos-dgk", "shufflers": NINE}), answers[:1]),
    ]


def _terms(plain: dict[str, Any]) -> list[Case]:
    """Terms of one field that cannot be."""

    def osh(**changes: Any) -> dict[str, Any]:
        return second(plain, shuffle=SHARED | changes)

    def without(name: str) -> dict[str, Any]:
        return second(plain, shuffle={key: value for key, value in SHARED.items() if key != name})

    return [
        ("terms that are false", second(plain, shuffle=False)),
        ("terms that are a list", second(plain, shuffle=[])),
        ("terms that are empty", second(plain, shuffle={})),
        ("terms without delta", without("delta")),
        ("terms without together", without("together")),
        ("terms with a further field", osh(hpke="00")),
        ("an unknown mode", osh(mode="eos")),
        ("a mode that objects have", osh(mode="constructor")),
        ("a mode that is a list", osh(mode=["osh"])),
        ("a minimum of one", osh(minimum=1)),
        ("a minimum in text", osh(minimum="1000")),
        ("a maximum below the minimum", osh(maximum=999)),
        ("a maximum too large", osh(maximum=10**8 + 1)),
        ("fakes below zero", osh(fakes=-1)),
        ("too many fakes", osh(fakes=10**8 + 1)),
        ("fakes that are true", osh(fakes=True)),
        ("too many spot checks", osh(spot_checks=10_001)),
        ("a delta of one", osh(delta="1")),
        ("a delta that is a number", osh(delta=0)),
        ("a delta in plain decimals", osh(delta="0.001")),
        ("a delta of zero", osh(delta="0e-9")),
        ("a delta with a zero at the end", osh(delta="2.50e-10")),
        ("a delta without an exponent of its own", osh(delta="1e-0")),
        ("a delta with an exponent above", osh(delta="1e9")),
        ("a delta with a long exponent", osh(delta="1e-09")),
        ("a delta too small", osh(delta="1e-31")),
        ("a delta of two digits", osh(delta="10e-9")),
        ("a delta in capitals", osh(delta="1E-9")),
        ("a delta with a line break", osh(delta="1e-9\n")),
        ("a delta of too many digits", osh(delta="1.111111111111111111e-9")),
    ]


def _parties(plain: dict[str, Any]) -> list[Case]:
    """Parties that cannot be, or not together."""

    def osh(**changes: Any) -> dict[str, Any]:
        return second(plain, shuffle=SHARED | changes)

    def first(**changes: Any) -> dict[str, Any]:
        return osh(shufflers=[FIRST | changes, SECOND, THIRD])

    urls = {
        "without https": "http://first.example",
        "with a user": "https://me@first.example",
        "with a query": "https://first.example?x=1",
        "with a fragment": "https://first.example#x",
        "with a slash at the end": "https://first.example/",
        "with a way up": "https://first.example/a/../b",
        "with an escape": "https://first.example/%41",
        "in capitals": "https://First.example",
        "with a port that goes without saying": "https://first.example:443",
        "with no port after the colon": "https://first.example:",
        "with a port that is none": "https://first.example:65536",
        "with a port from zero": "https://first.example:08443",
        "of a script": "javascript:alert(1)",
        "of nowhere": "https://",
        "with a dot too many": "https://first..example",
        "of a neighbour": "http://127.0.0.2:8000",
        "of a name that begins like here": "http://localhost.example",
        "with a line break": "https://first.example\n",
        "too long": "https://" + "a" * 193,
    }
    return [
        ("a relay that is left out", second(plain, shuffle=RELAYED | {"relay": None})),
        ("a relay with an identity", second(plain, shuffle=RELAYED | {"relay": RELAY | {"identity": "b" * 64}})),
        ("a relay without an address", second(plain, shuffle=RELAYED | {"relay": {"name": "Relay"}})),
        ("a relay that is false", osh(relay=False)),
        ("two shufflers behind a relay", second(plain, shuffle=RELAYED | {"shufflers": [FIRST, SECOND]})),
        ("one shuffler in layers", second(plain, shuffle=LAYERED | {"shufflers": [FIRST]})),
        (
            "ten shufflers in layers",
            second(plain, shuffle=LAYERED | {"shufflers": [*NINE, party("T", "b", RELAY["url"])]}),
        ),
        ("two shufflers that share", osh(shufflers=[FIRST, SECOND])),
        ("four shufflers that share", osh(shufflers=[*THREE, FOURTH])),
        ("shufflers that are an object", osh(shufflers={})),
        ("a shuffler in text", osh(shufflers=["First", SECOND, THIRD])),
        ("a shuffler with a further field", first(key="x")),
        ("a shuffler without a name", osh(shufflers=[FIRST, SECOND, {k: v for k, v in THIRD.items() if k != "name"}])),
        ("a shuffler with an empty name", first(name="")),
        ("a shuffler with a long name", first(name="x" * 101)),
        ("a shuffler with a number for a name", first(name=1)),
        ("a shuffler whose name is not NFC", first(name="cafe\u0301")),
        ("a key in capitals", first(identity="A" * 64)),
        ("a key of 63 digits", first(identity="1" * 63)),
        ("a key that is null", first(identity=None)),
        ("a shuffler's name twice", first(name=SECOND["name"])),
        ("a shuffler's address twice", first(url=SECOND["url"])),
        ("a shuffler's key twice", first(identity=SECOND["identity"])),
        ("the collector's key at a shuffler", first(identity=COLLECTOR["identity"])),
        ("a collector with an address", osh(collector=COLLECTOR | {"url": "https://collector.example"})),
        ("a collector that is null", osh(collector=None)),
        *((f"an address {name}", first(url=url)) for name, url in urls.items()),
    ]


def _claims(plain: dict[str, Any]) -> list[Case]:
    """Groups of roles that are no groups, or not in their one form."""
    groups: dict[str, Any] = {
        "roles together that are null": None,
        "roles together that are no list": {"collector": "relay"},
        "a group in text": ["collector"],
        "a group of one": [["collector"]],
        "an empty group": [[]],
        "a group that is not sorted": [["shuffler_1", "collector"]],
        "groups that are not sorted": [["shuffler_1", "shuffler_2"], ["collector", "shuffler_3"]],
        "a role twice in a group": [["collector", "collector"]],
        "a role in two groups": [["collector", "shuffler_1"], ["shuffler_1", "shuffler_2"]],
        "a role that nobody has": [["collector", "relay"]],
        "a fourth of three shufflers": [["collector", "shuffler_4"]],
        "an unknown role": [["collector", "server"]],
        "a role that is a list": [[["collector"], "shuffler_1"]],
        "a role that is an object": [["collector", {"to_string": 1}]],
    }
    return [(name, second(plain, shuffle=SHARED | {"together": value})) for name, value in groups.items()]


def bad(plain: dict[str, Any], others: dict[str, dict[str, Any]]) -> list[Case]:
    """Bad documents: of a document with one question, and of others that shufflers cannot take."""
    return [
        ("version 1 with a field of version 2", plain | {"shuffle": None}),
        ("version 1 that is shuffled", second(plain, shuffle=SHARED) | {"version": 1}),
        ("version 2 without its fields", plain | {"version": 2}),
        ("version 2 without windows", {k: v for k, v in second(plain).items() if k != "windows"}),
        ("version 2 in text", second(plain) | {"version": "2"}),
        ("version 3", second(plain) | {"version": 3}),
        ("version 0", plain | {"version": 0}),
        ("a cohort that shufflers do not wait for", second(plain, shuffle=SHARED, minimum_cohort=1001)),
        *((f"shuffled {name}", second(other, shuffle=SHARED)) for name, other in others.items()),
        *_terms(plain),
        *_parties(plain),
        *_claims(plain),
    ]
