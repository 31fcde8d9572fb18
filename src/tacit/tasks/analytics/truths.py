"""Truth values as text: the one place that says which words are true and which are false."""

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_BLANKS = " \t\n\r\f\v"


def truth_of(text: str) -> bool | None:
    """A truth value as PostgreSQL reads it; None if it would not.

    Case and blanks around the word do not matter, and a word may be cut short where that leaves no doubt: `t` and `of`
    are read, `o` is not.
    """
    word = text.strip(_BLANKS).lower()
    meant = {truth for name, truth in _WORDS.items() if word and name.startswith(word)}
    return meant.pop() if len(meant) == 1 else None
