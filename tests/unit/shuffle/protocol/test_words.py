"""Words: every word is a report, and every word of a report is equally likely."""

from fractions import Fraction

import numpy as np
import pytest

from tacit import BLH, GRR, HRR, OLH, OUE
from tacit.device.base import Device
from tacit.device.kinds.grr import GRRDevice
from tacit.device.numbers.coins import Coins, ReplayCoins, ScriptedCoins
from tacit.errors import InvalidSpec, ReportRejected
from tacit.shuffle.protocol.word_arrays import decode_words
from tacit.shuffle.protocol.words import WordRule, decode_word, encode_word, fits, rule_of, why_not
from tacit.testing.statistics import assert_fits, chi_square_p

FITTING: list[GRR | OLH | BLH] = [
    GRR(size=2, epsilon="1"),
    GRR(size=3, epsilon="1"),
    GRR(size=1000, epsilon="6"),
    OLH(size=1 << 40, epsilon="3"),
    OLH(size=50, epsilon="7"),
    BLH(size=9, epsilon="1"),
]
EDGES = [0, 1, 9, 10, (1 << 32) - 1, 1 << 32, (1 << 63) + 12345, (1 << 64) - 1]


@pytest.mark.parametrize("mechanism", FITTING, ids=lambda m: f"{m.kind}{m.size}")
def test_every_word_is_a_report_one_by_one_and_in_arrays(mechanism: GRR | OLH | BLH):
    words = [*EDGES, *np.frombuffer(ReplayCoins(b"any").words(200), "<u8").tolist()]
    reports = decode_words(mechanism, np.array(words, np.uint64))
    assert reports.dtype == mechanism.report_dtype
    mechanism.check_reports(reports)
    assert reports.tobytes() == b"".join(decode_word(mechanism, word) for word in words)


@pytest.mark.parametrize("mechanism", FITTING, ids=lambda m: f"{m.kind}{m.size}")
def test_a_report_comes_back_from_its_word(mechanism: GRR | OLH | BLH):
    coins = ReplayCoins(b"reports")
    for value in range(2):
        report = mechanism.privatize_one(value, coins)
        assert decode_word(mechanism, encode_word(mechanism, report, coins)) == report


def words_of(rule: WordRule, code: int) -> int:
    return -(-((1 << rule.bits) - code) // rule.outcomes)


@pytest.mark.parametrize("size", [2, 3, 10, 1000, (1 << 24) - 1])
def test_the_first_and_the_last_word_of_every_code_are_reached_and_nothing_beyond(size: int):
    grr = GRRDevice(size=size, epsilon="4")
    for code in {0, 1, size // 2, size - 1}:
        count = words_of(rule_of(grr), code)
        report = code.to_bytes(rule_of(grr).code_bytes, "little")
        shift = 64 - (count - 1).bit_length()
        assert encode_word(grr, report, ScriptedCoins([0])) == code
        assert encode_word(grr, report, ScriptedCoins([(count - 1) << shift])) == code + (count - 1) * size
        assert code + count * size >= 1 << 64
        if count << shift < 1 << 64:
            # The first coin word beyond is thrown away, and the next one is taken.
            assert encode_word(grr, report, ScriptedCoins([count << shift, 0])) == code


def test_the_law_of_a_word_is_uniform_given_a_uniform_report():
    """Exactly, by counting: coin words below the limit give words of the code, each the same number of times."""
    grr = GRRDevice(size=10, epsilon="1")
    for code in range(10):
        count = words_of(rule_of(grr), code)
        shift = 64 - (count - 1).bit_length()
        # Coin words from place << shift to ((place + 1) << shift) - 1 give the same word: 2^shift for every place.
        for place in (0, 1, count // 2, count - 1):
            wanted = code + place * 10
            for coin in (place << shift, ((place + 1) << shift) - 1):
                assert encode_word(grr, bytes([code]), ScriptedCoins([coin])) == wanted


def test_upper_and_lower_bits_of_words_are_even():
    """False-alarm probability 1e-7 each; a top byte that never reaches its upper half would have p below 1e-300."""
    for mechanism in (GRR(size=10, epsilon="1"), OLH(size=50, epsilon="2")):
        coins: Coins = ReplayCoins(mechanism.kind.encode())
        rule = rule_of(mechanism)
        reports = [decode_word(mechanism, coins.word()) for _ in range(4096)]
        words = np.array([encode_word(mechanism, report, coins) for report in reports], np.uint64)
        for shift in (56, 24, 8):
            cells = np.bincount((words >> np.uint64(shift) & np.uint64(15)).astype(np.int64), minlength=16)
            assert_fits(cells, np.full(16, 1 / 16))
        codes = np.bincount((words & np.uint64((1 << rule.bits) - 1)).astype(np.uint64) % np.uint64(rule.outcomes))
        assert_fits(codes, np.full(rule.outcomes, 1 / rule.outcomes))
    assert chi_square_p(4096.0, 15) < 1e-300


def test_fakes_are_counted_by_their_uniform_share():
    assert WordRule(10, seeded=False).fake_share == Fraction((1 << 64) - 6, 1 << 64)
    assert WordRule(16, seeded=True).fake_share == 1
    rule = WordRule(1000, seeded=True)
    least = Fraction((1 << 32) // 1000, 1 << 32)
    assert rule.fake_share == 1000 * least >= 1 - Fraction(1000, 1 << 32)


@pytest.mark.parametrize("mechanism", [OUE(size=4, epsilon="1"), HRR(size=4, epsilon="1")], ids=lambda m: m.kind)
def test_kinds_that_do_not_fit_are_refused_with_a_reason(mechanism: Device):
    assert not fits(mechanism)
    assert "64-bit word" in why_not(mechanism) and mechanism.kind in why_not(mechanism)
    with pytest.raises(InvalidSpec, match="bit by bit"):
        rule_of(mechanism)


@pytest.mark.parametrize("report", [b"", b"\x01\x02", b"\x0a"])
def test_what_is_no_report_has_no_word(report: bytes):
    with pytest.raises(ReportRejected):
        encode_word(GRRDevice(size=10, epsilon="1"), report, ReplayCoins(b""))
