"""A uniform real number that is drawn lazily, 64 bits at a time, so that any rational probability is exact.

Used by the central model, which is not local.
"""

from fractions import Fraction

from tacit.device.numbers.coins import Coins


class UniformReal:
    """A number in [0, 1) whose first word is known; further words are drawn only when a comparison needs them.

    >>> from tacit.device.numbers.coins import ScriptedCoins
    >>> UniformReal(1 << 62, ScriptedCoins([])).below(Fraction(1, 3))  # 0.25...: decided by the first word
    True
    >>> UniformReal((1 << 64) // 3, ScriptedCoins([7])).below(Fraction(1, 3))  # needs one more
    True
    """

    def __init__(self, first: int, coins: Coins) -> None:
        """Hold the first word and the coins that the rest would come from."""
        self._digits, self._bits, self._coins = first, 64, coins

    def below(self, bound: Fraction) -> bool:
        """Whether the number is below a rational bound; true with exactly that probability."""
        # The digits so far leave the interval [digits, digits + 1)/2^bits; draw more while the bound lies inside it.
        while True:
            scaled = bound.numerator << self._bits
            if (self._digits + 1) * bound.denominator <= scaled:
                return True
            if self._digits * bound.denominator >= scaled:
                return False
            self._digits = self._digits << 64 | self._coins.word()
            self._bits += 64
