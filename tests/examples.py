"""How many examples a property is tried on."""

from hypothesis import settings

FEW, MANY = 25, 100
"""Of a property that asks for 100: in a run without slow tests, and in one with them."""


def load_profile(*, is_quick: bool) -> None:
    """Choose how much a run tries. There is no deadline: on a busy machine anything may take any time."""
    settings.register_profile("tacit", max_examples=FEW if is_quick else MANY, deadline=None)
    settings.load_profile("tacit")


def examples(number: int) -> settings:
    """As many examples, or in a run without slow tests a quarter of them."""
    return settings(max_examples=max(number * settings.default.max_examples // MANY, 5))  # pyright: ignore
