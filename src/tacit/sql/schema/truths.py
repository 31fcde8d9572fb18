"""Boolean literals as text: the one place that lists which words mean TRUE and which FALSE, as PostgreSQL does."""

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# PostgreSQL strips ASCII blanks alone; Python's strip() without an argument would also take those of Unicode.
_BLANKS = " \t\n\r\f\v"


def truth_of(text: str) -> bool | None:
    """The boolean that PostgreSQL's input function reads, or None if it would refuse the text.

    Case and blanks around the word do not matter, and any unique prefix of a word is accepted: `t` and `of` are read,
    `o` (on or off?) is not.
    """
    word = text.strip(_BLANKS).lower()
    meant = {truth for name, truth in _WORDS.items() if word and name.startswith(word)}
    return meant.pop() if len(meant) == 1 else None
