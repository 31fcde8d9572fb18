"""An exactly uniform real number, revealed word by word: what makes any rational probability exact. Not local."""

from fractions import Fraction

from tacit.device.coins import Coins


class UniformReal:
    """A number in [0, 1) whose first word is known; further words are drawn only when a comparison needs them.

    >>> from tacit.device.coins import ScriptedCoins
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
        while True:
            scaled = bound.numerator << self._bits
            if (self._digits + 1) * bound.denominator <= scaled:
                return True
            if self._digits * bound.denominator >= scaled:
                return False
            self._digits = self._digits << 64 | self._coins.word()
            self._bits += 64
