"""Certificates: round trips, claims that are too small, and accountants that may not sign."""

import json
from dataclasses import replace
from decimal import Decimal
from math import exp, log
from typing import Any

import pytest

import tacit
from tacit.core.compose import OneOf
from tacit.device.families.compose import Questions
from tacit.device.numbers.canonical import canonical
from tacit.errors import CertificateRefused, InvalidSpec
from tacit.shuffle.accounting.account import ShuffledCrowd
from tacit.shuffle.certificate import VERSIONS, Certificate, certify, certify_members, worst_member
from tacit.shuffle.mechanisms.closed_forms import CentralTarget
from tacit.shuffle.mechanisms.planned import sh_rap, sh_rap_r

GRR = tacit.GRR(size=64, epsilon="4")


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certify(GRR, n_min=20_000, delta="1e-8", fakes=2_000)


def test_the_three_numbers_grow_with_the_adversary(certificate: Certificate) -> None:
    collector, others, shufflers = map(Decimal, certificate.triple)
    assert collector < others < shufflers == 4
    assert certificate.accountant == "amp_blanket" and certificate.delta == "0.00000001"
    without = certify(GRR, n_min=20_000, delta="1e-8")
    # Without fakes nothing hides a respondent whom all others help to find.
    assert Decimal(without.epsilon) > collector and without.epsilon_others == "4"


def test_a_round_trip_through_canonical_json_changes_nothing(certificate: Certificate) -> None:
    assert Certificate.from_json(json.loads(certificate.to_bytes())) == certificate
    assert canonical(certificate.to_json()) == certificate.to_bytes()


def test_an_honest_certificate_verifies(certificate: Certificate) -> None:
    certificate.verify(GRR)
    # Larger claims and larger crowds are honest too.
    replace(certificate, epsilon="0.5").verify(GRR)
    replace(certificate, n_min=30_000).verify(GRR)


TOO_GOOD: dict[str, dict[str, Any]] = {
    "a smaller epsilon": {"epsilon": "0.05"},
    "a smaller second epsilon": {"epsilon_others": "0.5"},
    "fewer respondents": {"n_min": 15_000},
    "fewer fakes": {"fakes": 500},
    "a smaller delta": {"delta": "0.000000000001"},
    "another accountant": {"accountant": "amp_clone"},
    "a published one": {"accountant": "published_bbgn"},
    "a smaller local epsilon": {"local_epsilon": "3.999"},
}


@pytest.mark.parametrize("change", TOO_GOOD)
def test_a_claim_that_is_too_good_is_refused(certificate: Certificate, change: str) -> None:
    with pytest.raises((CertificateRefused, InvalidSpec), match=r"must be|proven only"):
        replace(certificate, **TOO_GOOD[change]).verify(GRR)


def test_the_refusal_says_what_could_be_claimed(certificate: Certificate) -> None:
    with pytest.raises(CertificateRefused, match=rf"epsilon is 0.05, must be at least {certificate.epsilon}"):
        replace(certificate, epsilon="0.05").verify(GRR)


def test_another_mechanism_is_refused(certificate: Certificate) -> None:
    with pytest.raises(CertificateRefused, match="must be the one certified"):
        certificate.verify(tacit.GRR(size=65, epsilon="4"))


MALFORMED: dict[str, Any] = {
    "a float": {"epsilon": 0.5}, "exponents": {"delta": "1e-9"}, "trailing zeros": {"epsilon": "0.10"},
    "an unknown accountant": {"accountant": "amp_magic"}, "another version": {"version": 2},
    "a digest that is none": {"digest": "abc"}, "half a respondent": {"n_min": 0.5},
    "no delta": {"delta": "0"}, "epsilons out of order": {"epsilon": "3.9"}, "other neighbours": {"neighbours": "any"},
}  # fmt: skip


@pytest.mark.parametrize("change", MALFORMED)
def test_malformed_documents_are_refused(certificate: Certificate, change: str) -> None:
    with pytest.raises(CertificateRefused):
        Certificate.from_json(certificate.to_json() | MALFORMED[change])


def test_missing_and_unknown_fields_are_named(certificate: Certificate) -> None:
    document = certificate.to_json()
    del document["fakes"]
    with pytest.raises(CertificateRefused, match="fakes, noise"):
        Certificate.from_json(document | {"noise": 1})
    with pytest.raises(CertificateRefused, match="object"):
        Certificate.from_json([])


def test_the_variation_ratio_bound_cannot_sign(certificate: Certificate) -> None:
    assert not [name for name in VERSIONS if "vr" in name or "variation" in name]
    for name in ("amp_vr", "variation", "amp_variation"):
        with pytest.raises(CertificateRefused, match="accountant"):
            replace(certificate, accountant=name)
        with pytest.raises(InvalidSpec, match="accountant"):
            certify(GRR, n_min=100, delta="1e-6", accountant=name)


# Unary encodings: whole vectors or single bits, and never one for the other.

SUE = tacit.SUE(size=8, epsilon="6")


def test_single_bits_take_the_published_bound() -> None:
    issued = certify(SUE, n_min=10**6, delta="1e-9", fragmented=True)
    assert issued.accountant == "published_rap" and issued.fragmented
    issued.verify(SUE)
    with pytest.raises(InvalidSpec, match="every bit is shuffled on its own"):
        replace(issued, fragmented=False).verify(SUE)


def test_whole_vectors_and_single_bits_are_not_mixed() -> None:
    with pytest.raises(InvalidSpec, match="every bit is shuffled on its own"):
        certify(SUE, n_min=10**6, delta="1e-9", accountant="published_rap")
    with pytest.raises(InvalidSpec, match="holds for whole reports"):
        certify(SUE, n_min=10**6, delta="1e-9", accountant="amp_blanket", fragmented=True)
    with pytest.raises(InvalidSpec, match="the mechanism is oue, must be sue or shuffled_sue"):
        certify(tacit.OUE(size=8, epsilon="6"), n_min=10**6, delta="1e-9", fragmented=True)
    with pytest.raises(InvalidSpec, match="every bit is shuffled on its own"):
        certify(SUE, n_min=10**6, delta="1e-9", accountant="published_rap_r")
    with pytest.raises(InvalidSpec, match="does not know of fakes"):
        certify(SUE, n_min=10**6, delta="1e-9", fragmented=True, fakes=5)


def test_published_bounds_are_signed_as_such() -> None:
    issued = certify(GRR, n_min=10**6, delta="1e-9", accountant="published_bbgn")
    issued.verify(GRR)
    assert Decimal(issued.epsilon) > 2 * Decimal(certify(GRR, n_min=10**6, delta="1e-9").epsilon)


def test_bits_for_a_removed_respondent_say_so_and_are_half_of_a_replaced_one() -> None:
    removed, replaced = (
        certify(SUE, n_min=10**6, delta="1e-9", fragmented=True, accountant=f"published_{name}")
        for name in ("rap_r", "rap")
    )
    assert (removed.neighbours, replaced.neighbours) == ("removal", "replacement")
    # sqrt(14 ln(2/delta) (e^3 + 1)/(n - 1)): one bit flips with 1/(e^3 + 1), and the odds of SUE are e^6.
    assert float(removed.epsilon) == pytest.approx((14 * log(2e9) * (exp(3) + 1) / (10**6 - 1)) ** 0.5, rel=1e-3)
    # Up to the logarithms of 2/delta and 4/delta, replacing is removing twice.
    assert Decimal(2) < Decimal(replaced.epsilon) / Decimal(removed.epsilon) < Decimal("2.04")
    removed.verify(SUE)
    with pytest.raises(CertificateRefused, match=rf"epsilon is 0.05, must be at least {removed.epsilon}"):
        replace(removed, epsilon="0.05").verify(SUE)
    # An epsilon of the one kind of neighbours may not be shown as one of the other.
    with pytest.raises(CertificateRefused, match="neighbours is replacement"):
        replace(removed, neighbours="replacement").verify(SUE)
    with pytest.raises(CertificateRefused, match="neighbours is removal"):
        replace(replaced, neighbours="removal").verify(SUE)


def test_planned_messages_are_certified_by_the_form_that_planned_them() -> None:
    target = CentralTarget("0.5", 1e-9, 602_325)
    for planned, form in ((sh_rap(target, 16), "published_rap"), (sh_rap_r(target, 16), "published_rap_r")):
        issued = certify(planned.mechanism, n_min=target.n, delta="1e-9", fragmented=True, accountant=form)
        assert Decimal("0.499") < Decimal(issued.epsilon) <= Decimal("0.5")


def test_nothing_is_assumed_of_hashing() -> None:
    mechanism = tacit.OLH(size=1 << 17, epsilon="1", buckets=8)
    issued = certify(mechanism, n_min=20_000, delta="1e-8")
    assert issued.hashing == "any"
    issued.verify(mechanism)
    ideal = ShuffledCrowd(mechanism, 20_000, hashing="pairwise").epsilon(1e-8)
    assert ideal is not None
    with pytest.raises(CertificateRefused, match=f"must be at least {issued.epsilon}"):
        replace(issued, epsilon=str(ideal)).verify(mechanism)
    for claimed, made in (("pairwise", issued), ("any", certify(GRR, n_min=20_000, delta="1e-8")), ("", issued)):
        with pytest.raises(CertificateRefused, match="hashing is"):
            replace(made, hashing=claimed).verify(mechanism if made is issued else GRR)


def test_members_are_certified_by_their_own_groups() -> None:
    family = OneOf(family=Questions(mechanisms=(tacit.GRR(size=2, epsilon="1"), tacit.GRR(size=5, epsilon="1"))))
    each = certify_members(family, n_min=[5_000, 500], delta="1e-6")
    assert worst_member(each) is each[1]
    assert each[1] == certify(tacit.GRR(size=5, epsilon="1"), n_min=500, delta="1e-6")
    with pytest.raises(InvalidSpec, match="one for each of 2 members"):
        certify_members(family, n_min=[5_000], delta="1e-6")
