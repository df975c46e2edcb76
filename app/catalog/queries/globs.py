"""Globs on names: `*` stands for any text, `?` for one character, and nothing else is special.

A glob is matched in time proportional to its length times that of the text. Runs of wildcards are put in order, `?`
before `*`, and each part between stars is looked for once, at its first place (an atomic group): a later place of it
leaves less of the text to the parts behind it, so there is nothing to come back for.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto


class Wildcard(Enum):
    """What stands for other letters in a pattern."""

    TEXT = auto()
    LETTER = auto()


Pattern = tuple[str | Wildcard, ...]
"""What a text is compared with as a whole, letter by letter."""

_WILDCARDS = {"*": Wildcard.TEXT, "?": Wildcard.LETTER}
_RUN = re.compile(r"[*?]*\*[*?]*")
_LETTER = "[^\n]"


def glob_pattern(glob: str) -> Pattern:
    """Return the pattern of a glob; no star in it comes before another wildcard."""
    ordered = _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)
    return tuple(_WILDCARDS.get(letter, letter) for letter in ordered)


def word_pattern(word: str) -> Pattern:
    """Return the pattern of the texts that have a word."""
    return (Wildcard.TEXT, *word, Wildcard.TEXT)


def split_pattern(pattern: Pattern) -> list[str]:
    """Return the parts of a pattern between its stars, as regular expressions of a fixed length."""
    parts = [""]
    for one in pattern:
        if one is Wildcard.TEXT:
            parts.append("")
        else:
            parts[-1] += re.escape(one) if isinstance(one, str) else _LETTER
    return parts


def join_parts(parts: list[str]) -> str:
    """Return the regular expression of parts with any text between them, which takes the first place of each part."""
    first, *others = parts
    middle = "".join(f"(?>{_LETTER}*?{part})" for part in others[:-1])
    return f"{first}{middle}{_LETTER}*{others[-1]}" if others else first


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression that fully matches what a glob does."""
    return re.compile(join_parts(split_pattern(glob_pattern(glob))))


def patterns_after(pattern: Pattern, beginning: str) -> set[Pattern]:
    """Return the patterns of what can follow a beginning in a text that a pattern matches."""
    found = {pattern}
    for letter in beginning:
        found = {rest for one in found for rest in _after_letter(one, letter)}
    return found


def _after_letter(pattern: Pattern, letter: str) -> Iterator[Pattern]:
    if pattern and pattern[0] is Wildcard.TEXT:
        yield pattern
        yield from _after_letter(pattern[1:], letter)
    elif pattern and pattern[0] in (Wildcard.LETTER, letter):
        yield pattern[1:]
