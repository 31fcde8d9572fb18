"""What a respondent is told about repeated reports, in words with the numbers filled in.

Never printed as a total: the epsilon of memoised reports, or any multiple of it. Between streams that repeat in
different patterns no such number holds.
"""

from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import exp

from tacit.device.windows.terms import AccountTerms, WindowTerms

_UNITS = {"day": "days", "week": "weeks", "month": "months"}


def factor_text(epsilon: Fraction) -> str:
    """Return e^epsilon with three digits, rounded up so that it stays a bound.

    >>> factor_text(Fraction(1))
    '2.72'
    """
    value = Decimal(exp(float(epsilon)))
    digits = 2 - value.adjusted()
    rounded = value.quantize(Decimal(1).scaleb(-max(0, digits)), rounding=ROUND_CEILING)
    return f"{rounded:,f}"


def guarantee_words(windows: WindowTerms, epsilon: Fraction) -> list[str]:
    """Return the sentences about what all reports of a device together reveal."""
    unit, factor = _UNITS[windows.every], factor_text(epsilon)
    last = windows.calendar.last_day(windows.count - 1).isoformat()
    if windows.guarantee == "pattern":
        return [
            "As long as your answer stays the same, all reports together stay within the factor "
            f"{factor}. If it changes, that it changed may become visible, and each new answer costs "
            f"{_plain(epsilon)} again."
        ]
    if windows.guarantee == "lifetime":
        return [
            f"All reports of this device together: a factor of at most {factor}, whatever your answers were and "
            "however they changed."
        ]
    span = f"any {windows.per} {unit} in a row" if windows.per > 1 else f"any one {windows.every}"
    return [
        f"Had anything been different within {span}, what this device sends would have been about as likely: by a "
        f"factor of at most {factor}.",
        f"Over longer times factors multiply: {windows.reports} reports until {last}.",
    ]


def always_words(windows: WindowTerms, account: AccountTerms) -> list[str]:
    """Return the sentences that hold whatever the guarantee is."""
    unit = _UNITS[windows.every] if account.run > 1 else windows.every
    anew = "" if account.lifetime_epsilon is None else " The cap for life starts anew."
    return [
        "This is per device; a second device counts again.",
        "That a device reports is visible.",
        f"After reinstalling, earlier reports are not remembered; this device then waits {account.run} {unit}.{anew}",
    ]


def _plain(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"
