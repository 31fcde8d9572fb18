"""The commands of the shuffle model: what they print, what they warn of and what they refuse."""

import json

import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import cli
from tacit.errors import InvalidSpec
from tacit.shuffle.certificate import Certificate

PLAN = "plan --task shuffle --size 256 --n 20000 --epsilon 0.5 --delta 1e-9"
CERTIFY = "shuffle certify --kind grr --size 64 --local-epsilon 4 --n 20000 --delta 1e-9"
MANY = CERTIFY.replace("20000", "9999999")


def run(command: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, command.split(), catch_exceptions=True)
    if isinstance(result.exception, Exception) and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_a_plan_as_json() -> None:
    code, out, err = run(f"{PLAN} --cap 3 --json")
    answer = json.loads(out)
    assert code == 0 and err == ""
    assert len(answer["frontier"]) == 5
    for row in [answer["pick"], *answer["frontier"]]:
        assert row.keys() >= {"kind", "local_epsilon", "epsilon", "delta", "fakes", "rmse", "certificate"}
        certificate = Certificate.from_json(row["certificate"])
        certificate.verify(tacit.parse(row["spec"]))
    assert answer["pick"]["local_epsilon"] <= 3 and answer["pick"]["epsilon"] <= 0.5


def test_an_uncapped_plan_warns_and_names_its_local_epsilon() -> None:
    code, out, err = run(PLAN)
    assert code == 0 and "was not capped" in err
    local = err.split("local epsilon is ")[1].split()[0]
    assert f"pick: grr at local epsilon {local}, for no cap" in out and "none" in out


def test_a_certificate_as_json() -> None:
    _, out, _ = run(f"{CERTIFY} --json")
    answer = json.loads(out)
    assert answer["accountant"] == "amp_blanket" and 0 < answer["epsilon"] < answer["local_epsilon"] == 4
    Certificate.from_json(answer["certificate"]).verify(tacit.parse(answer["spec"]))


def test_a_certificate_as_a_table() -> None:
    _, out, err = run(f"{CERTIFY} --fakes 1000")
    assert "the collector and all other respondents" in out and "1,000 fakes" in out and err == ""
    _, _, err = run(CERTIFY.replace("1e-9", "1e-3"))
    assert "delta is 1e-3, at least one over 20000 respondents" in err


def test_several_rounds_keep_less_than_one_and_more_than_their_sum() -> None:
    _, out, _ = run(f"{CERTIFY} --rounds 4 --json")
    answer = json.loads(out)
    assert answer["rounds"] == 4
    assert answer["epsilon"] < answer["rounds_epsilon"] < 3 * answer["epsilon"]
    assert "rounds" not in answer["certificate"]
    last = run(f"{CERTIFY} --rounds 4")[1].splitlines()[-1]
    assert last.startswith("the collector, after 4 rounds") and str(answer["rounds_epsilon"]) in last


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            CERTIFY.replace("20000", "9999999") + " --rounds 2 --accountant published_bbgn",
            "--rounds composes what amp_blanket and amp_clone",
        ),
        (CERTIFY.replace("1e-9", "nothing"), "must be a number such as 0.5 or 1e-9"),
        (f"{PLAN} --cap x", "--cap is 'x'"),
        (PLAN.replace("--size 256", ""), "--size is needed"),
        ("plan --task histogram --size 8 --n 100 --epsilon 1 --cap 3", "are for task shuffle"),
    ],
)
def test_wrong_options_are_explained(command: str, message: str) -> None:
    code, _, err = run(command)
    assert code == 2 and message in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{PLAN} --cap -1", "cap is -1"),
        (f"{CERTIFY} --accountant amp_vr", "accountant is 'amp_vr', must be amp_blanket"),
        (f"{CERTIFY} --fragmented", "holds for whole reports"),
        (CERTIFY.replace("grr", "oue") + " --fakes 5", "uniform words are no reports"),
    ],
)
def test_what_cannot_be_certified_is_refused(command: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        run(command)


def test_a_published_bound_and_hashing() -> None:
    _, out, _ = run(CERTIFY.replace("grr", "olh") + " --json")
    assert json.loads(out)["certificate"]["hashing"] == "any"
    _, out, _ = run(CERTIFY.replace("20000", "2000000") + " --accountant published_bbgn --json")
    assert json.loads(out)["accountant"] == "published_bbgn"
