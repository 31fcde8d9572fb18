"""The golden vectors, run against the device reference and the batch code."""

import json
import subprocess
import sys
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tacit import errors
from tacit.core.mechanism import Mechanism
from tacit.device.catalog import KINDS, device_of
from tacit.device.numbers.budget import Amplified, as_budget
from tacit.device.numbers.canonical import canonical, digest
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.hashing import bucket, hash32, text_id

catalog = pytest.importorskip("tacit.catalog", reason="the catalogue of batch mechanisms does not exist yet")

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "spec" / "vectors"
FILES = sorted(path.relative_to(VECTORS).as_posix() for path in VECTORS.glob("*/*.json"))
GOOD = [name for name in FILES if "/bad_" not in name]
BAD = [name for name in FILES if "/bad_" in name]
BATCHED = {mechanism.kind for mechanism in catalog.CATALOG}


@cache
def read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def decode(value: Any) -> Any:
    """A private value from its JSON: {"integer": digits} stands for integers from 2^53 on."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        return int(value["integer"]) if value.keys() == {"integer"} else {k: decode(v) for k, v in value.items()}
    return value


def mechanism_of(spec: Any) -> Mechanism:
    """The batch half of a spec; kinds that only a device has are skipped."""
    if spec["kind"] not in BATCHED:
        pytest.skip(f"{spec['kind']} has no batch code")
    return catalog.parse(spec)


@pytest.mark.parametrize("name", GOOD)
def test_device_makes_the_golden_reports(name: str) -> None:
    vector = read(name)
    device = device_of(vector["spec"])
    assert device.spec() == vector["spec"]
    assert device.digest == vector["digest"]
    for case in vector["cases"]:
        coins, after = ReplayCoins(bytes.fromhex(case["seed"])), ReplayCoins(bytes.fromhex(case["seed"]))
        assert device.privatize_one(decode(case["value"]), coins).hex() == case["report"]
        after.words(case["words"])
        assert coins.word() == after.word(), "another number of words was consumed"


@pytest.mark.parametrize("name", GOOD)
def test_batch_code_makes_the_golden_reports_and_accepts_them(name: str) -> None:
    vector = read(name)
    mechanism = mechanism_of(vector["spec"])
    assert mechanism.digest == vector["digest"]
    for case in vector["cases"]:
        reports = mechanism.privatize([decode(case["value"])], ReplayCoins(bytes.fromhex(case["seed"])))
        assert reports.tobytes().hex() == case["report"]
        assert mechanism.valid(mechanism.decode(bytes.fromhex(case["report"]))).all()


@pytest.mark.parametrize("name", [name for name in BAD if "report" not in read(name)])
def test_device_refuses_bad_vectors(name: str) -> None:
    vector = read(name)
    error = getattr(errors, vector["error"])
    if "value" not in vector:
        with pytest.raises(error):
            device_of(vector["spec"])
        return
    with pytest.raises(error) as raised:
        device_of(vector["spec"]).privatize_one(decode(vector["value"]), ReplayCoins(b""))
    assert type(raised.value) is error


@pytest.mark.parametrize("name", [name for name in BAD if "report" in read(name)])
def test_batch_code_refuses_bad_reports(name: str) -> None:
    vector = read(name)
    mechanism = mechanism_of(vector["spec"])
    with pytest.raises(getattr(errors, vector["error"])):
        mechanism.tally(mechanism.decode(bytes.fromhex(vector["report"])))


def test_every_kind_has_vectors() -> None:
    assert {kind.kind for kind in KINDS} <= {name.split("/")[0] for name in GOOD}
    assert {kind.kind for kind in KINDS} <= {name.split("/")[0] for name in BAD}


def test_odds_are_the_golden_vectors_and_true_floors() -> None:
    cases = read("odds.json")["odds"]
    assert len(cases) == 1000
    with localcontext() as context:
        context.prec = 80
        for case in cases:
            budget = as_budget(case["epsilon"])
            assert str(budget.odds) == case["odds"]
            if not isinstance(budget, Amplified):
                x = Decimal(budget.declared.numerator) / Decimal(budget.declared.denominator)
                assert int(x.exp() * 2**64) == budget.odds


def test_budgets_have_one_spelling_and_bad_ones_are_refused() -> None:
    for case in read("odds.json")["spellings"]:
        assert as_budget(case["given"]).to_spec() == case["canonical"]
    for wire in read("odds.json")["bad"]:
        # By way of a document: in Python an epsilon may be a number.
        with pytest.raises(errors.InvalidSpec):
            catalog.parse({"kind": "grr", "size": 4, "epsilon": wire})


def test_canonical_bytes_are_the_golden_vectors() -> None:
    for case in read("canonical.json")["cases"]:
        assert canonical(case["value"]).hex() == case["canonical"]
        assert digest(case["value"]) == case["digest"]
    for value in read("canonical.json")["bad"]:
        with pytest.raises(errors.InvalidSpec):
            canonical(value)


def test_hashes_are_the_golden_vectors() -> None:
    vectors = read("hashing.json")
    for case in vectors["hash32"]:
        assert hash32(case["seed"], int(case["value"])) == case["hash"]
    for case in vectors["bucket"]:
        assert bucket(case["seed"], int(case["value"]), case["buckets"]) == case["bucket"]
    for case in vectors["text_id"]:
        assert str(text_id(case["key"], case["text"])) == case["id"]


def test_replayed_coins_are_the_golden_vectors() -> None:
    for case in read("coins.json")["cases"]:
        words, draws = ReplayCoins(bytes.fromhex(case["seed"])), ReplayCoins(bytes.fromhex(case["seed"]))
        assert [str(words.word()) for _ in case["words"]] == case["words"]
        for draw in case["uniform"]:
            assert str(draws.uniform(int(draw["m"]))) == draw["value"]


def test_vectors_are_what_the_generator_makes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_vectors.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
