"""Damaged and forged files of reports and tallies: what is read from them, and what happens to what was read.

Checksums catch damage and no forgery, so that most files here are damaged first and signed afterwards. Run as a module
(`python -m tests.unit.wire.file_fuzz 50`), as the test with the address sanitiser does, it reads that many of every
form and kind.
"""

import io
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from tests.service.fuzz import Dice, cut, flip, grow, swap

import tacit
from tacit import kernels
from tacit.device.families.compose import Questions
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import TacitError
from tacit.oracles.sets import Padded
from tacit.testing.examples import example
from tacit.testing.laws import values_of
from tacit.wire.files import REPORTS_MAGIC, Reader, Writer, read_tally, report_blocks, write_tally
from tacit.wire.tallies import dump_tally, load_tally

REPORTS = 12
NUMBERS = (0, 1, 2, 11, 12, 13, 255, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def mechanisms() -> dict[str, Any]:
    """Every kind, and those that keep logs of reports: alone, behind a wrapper and inside members."""
    olh, abr = tacit.OLH(size=9, epsilon="1", state="log"), tacit.ABR(size=7, epsilon="1", state="log")
    half = replace(olh, epsilon=Share("2", "1/2"))
    nested = tacit.OneOf(family=Questions(mechanisms=(olh, example("grr", "1"))))
    return {kind.kind: example(kind.kind, "1") for kind in tacit.CATALOG} | {
        "olh log": olh,
        "abr log": abr,
        "padded log": Padded(epsilon="1", size=7, length=2, inner=olh),
        "one_of logs": tacit.OneOf(family=Questions(mechanisms=(olh, abr, olh))),
        "one_of nested": tacit.OneOf(family=Questions(mechanisms=(nested, abr))),
        "all_of log": tacit.AllOf(epsilon="2", members=(half, half), state="log"),
        "all_of members": tacit.AllOf(epsilon="2", members=(half, half), state="members"),
    }


def sample(mechanism: Any, dice: Dice, *, weighted: bool) -> Any:
    """A tally of some reports."""
    weights = np.array([dice.below(9) - 3 for _ in range(REPORTS)]) if weighted else None
    return mechanism.tally(mechanism.decode(reports_of(mechanism)), weights)


def reports_of(mechanism: Any) -> bytes:
    """Bytes of some reports, the same for every call."""
    value, coins = some_value(mechanism), ReplayCoins(b"files")
    return b"".join(mechanism.privatize_one(value, coins) for _ in range(REPORTS))


def some_value(mechanism: Any) -> Any:
    """A value of any mechanism, composed ones included."""
    if isinstance(mechanism, tacit.AllOf):
        return tuple(some_value(member) for member in mechanism.members)
    if isinstance(mechanism, tacit.OneOf):
        return tuple(some_value(mechanism.member(i)) for i in range(len(mechanism.family)))
    return values_of(mechanism)[-1]


def number(data: bytes, dice: Dice) -> bytes:
    """Another number in the place of eight bytes, or of one."""
    size = dice.one_of([1, 4, 8, 8])
    at = dice.below(max(1, len(data) - size + 1))
    return data[:at] + (dice.one_of(NUMBERS) % (1 << 8 * size)).to_bytes(size, "little") + data[at + size :]


def damaged(data: bytes, dice: Dice) -> bytes:
    """One or two faults, mostly of the same length."""
    for _ in range(1 + dice.below(2)):
        data = dice.one_of((number, number, number, flip, flip, cut, grow, swap))(data, dice)
    return data


def signed(data: bytes, dice: Dice) -> bytes:
    """A file whose blocks were damaged: their lengths, the number of reports or the header now and then as well."""
    header = 14 + int.from_bytes(data[10:14], "little")
    head, body = data[:header], data[header + 4 : -44]
    if dice.below(16) == 0:
        head = head[:14] + damaged(head[14:], dice)
    blocks = damaged(body, dice) if body else body
    claimed = dice.one_of([REPORTS] * 6 + list(NUMBERS))
    framed = (len(blocks).to_bytes(4, "little") + blocks if blocks else b"") + bytes(4)
    whole = head + framed + claimed.to_bytes(8, "little")
    return whole + sha256(whole).digest()


def use(tally: Any) -> None:
    """What is done with a tally that was accepted: it merges, is stored again and is estimated."""
    mechanism = tally.mechanism
    assert load_tally(mechanism, dump_tally(tally)).n == tally.n
    estimate(mechanism, tally + tally)


def estimate(mechanism: Any, tally: Any) -> None:
    """All estimates; impossible numbers must not give any that is no number."""
    candidates = [1, 2] if isinstance(mechanism, tacit.RAPPOR) else None
    for found in flat(mechanism.estimate(tally, candidates)):
        assert not np.isnan(found.value).any()
        assert not np.isnan(found.variance).any()


def flat(found: Any) -> list[Any]:
    """Estimates of members of members, in one list."""
    return [one for part in found for one in flat(part)] if isinstance(found, list) else [found]


def stored(mechanism: Any, dice: Dice) -> None:
    """A tally as a database keeps it, damaged behind its digest."""
    data = dump_tally(sample(mechanism, dice, weighted=dice.below(2) == 1))
    use(load_tally(mechanism, data[:38] + damaged(data[38:], dice)))


def tally_file(mechanism: Any, dice: Dice) -> None:
    """A `.tally` file, damaged and signed again."""
    stream = io.BytesIO()
    write_tally(stream, sample(mechanism, dice, weighted=dice.below(2) == 1))
    use(read_tally(io.BytesIO(signed(stream.getvalue(), dice)), "a.tally")[0])


def report_file(mechanism: Any, dice: Dice) -> None:
    """A `.reports` file, damaged and signed again."""
    stream = io.BytesIO()
    writer = Writer(stream, REPORTS_MAGIC, mechanism)
    writer.block(reports_of(mechanism), REPORTS)
    writer.close()
    reader = Reader(io.BytesIO(signed(stream.getvalue(), dice)), REPORTS_MAGIC, "a.reports")
    for reports in report_blocks(reader):
        use(mechanism.tally(reports))


FORMS: tuple[Callable[[Any, Dice], None], ...] = (stored, tally_file, report_file)


def fuzz(name: str, inputs: int) -> Counter[str]:
    """Read that many files of every form of one kind; anything but an error of ours is a failure of the caller."""
    mechanism, outcomes = mechanisms()[name], Counter[str]()
    for i, form in enumerate(FORMS):
        dice = Dice(i, *name.encode())
        for _ in range(inputs):
            try:
                with np.errstate(all="ignore"):
                    form(mechanism, dice)
                outcomes["accepted"] += 1
            except TacitError as error:
                outcomes[type(error).__name__] += 1
    return outcomes


def main(inputs: int) -> None:
    """Fuzz all kinds and say what came of it."""
    total = Counter[str]()
    for name in mechanisms():
        total += fuzz(name, inputs)
    print(f"compiled={kernels.compiled}", *(f"{outcome}={count}" for outcome, count in sorted(total.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]))
