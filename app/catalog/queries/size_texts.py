"""Searches the names of all sizes, and the texts that `q` looks through, without reading the text of each size.

A name is `standard_` before a key, and a text is a name before a series and a GPU. Beginnings and endings are few, and
the keys are sorted, so that only what may be anywhere in a key is looked for in all of them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.codes import Mask, encode_texts

_LINES_A_BLOCK = 2_000
_LINE_BREAK = "\n"
_LAST_LETTER = chr(0x10FFFF)


class Wildcard(Enum):
    """What stands for other letters in a pattern."""

    TEXT = auto()
    LETTER = auto()


Pattern = tuple[str | Wildcard, ...]
"""What a text is compared with as a whole, letter by letter."""

_WILDCARDS = {"*": Wildcard.TEXT, "?": Wildcard.LETTER}
_EXPRESSIONS = {Wildcard.TEXT: "[^\n]*", Wildcard.LETTER: "[^\n]"}
_ANYTHING: Pattern = (Wildcard.TEXT,)


def glob_pattern(glob: str) -> Pattern:
    """Return the pattern of a glob: only `*` and `?` are special."""
    return tuple(_WILDCARDS.get(letter, letter) for letter in re.sub(r"\*+", "*", glob))


def word_pattern(word: str) -> Pattern:
    """Return the pattern of the texts that have a word."""
    return (Wildcard.TEXT, *word, Wildcard.TEXT)


def to_expression(pattern: Pattern) -> str:
    """Return a pattern as a regular expression."""
    return "".join(re.escape(one) if isinstance(one, str) else _EXPRESSIONS[one] for one in pattern)


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


class Lines:
    """Texts that are searched as the lines of a few longer ones.

    A search through one of these takes a fraction of a millisecond, after which other threads can run.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._count = len(lines)
        self._blocks = [
            ("\n".join(("", *block, "")), _starts(block))
            for block in (lines[first : first + _LINES_A_BLOCK] for first in range(0, len(lines), _LINES_A_BLOCK))
        ]

    def match(self, pattern: Pattern) -> Mask:
        """Return which lines are like a pattern."""
        # What comes before the first letter is not searched, so that each search begins with a known one.
        begins, ends = pattern[:1] != _ANYTHING, pattern[-1:] != _ANYTHING
        middle = pattern[not begins : len(pattern) - (not ends)]
        if not (middle or begins or ends):
            return np.ones(self._count, dtype=bool)
        before, behind = _LINE_BREAK if begins else "", f"(?={_LINE_BREAK})" if ends else ""
        compiled = re.compile(f"{before}{to_expression(middle)}{behind}")
        mask = np.zeros(self._count, dtype=bool)
        for number, (text, starts) in enumerate(self._blocks):
            found = [one.start() for one in compiled.finditer(text)]
            if found:
                mask[number * _LINES_A_BLOCK + np.searchsorted(starts, found, side="right") - 1] = True
        return mask


def _starts(lines: Sequence[str]) -> NDArray[np.int64]:
    """Return where each line begins in a text of them all; a line break is in front of each."""
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines)) + 1
    starts: NDArray[np.int64] = np.cumsum(lengths) - lengths
    return starts


class SizeTexts:
    """The keys of all sizes in their order, their names in lower case, and the texts that `q` looks through."""

    def __init__(self, keys: Sequence[str], names: Sequence[str], search_texts: Sequence[str]) -> None:
        self._keys, self._key_lines = keys, Lines(keys)
        beginnings: list[str | None] = []
        endings: list[str] = []
        others: list[int] = []
        for position, (key, name, text) in enumerate(zip(keys, names, search_texts, strict=True)):
            if name.endswith(key) and f"{text} ".startswith(f"{name} "):
                beginnings.append(name.removesuffix(key))
                endings.append(text.removeprefix(name))
            else:  # its key is not that of its name
                beginnings.append(None)
                endings.append("")
                others.append(position)
        self._beginnings, self._endings = encode_texts(beginnings), encode_texts(endings)
        self._ending_lines = Lines([ending or "" for ending in self._endings.values])
        self._others = np.array(others, dtype=np.int64)
        self._other_names = Lines([names[position] for position in others])
        self._other_texts = Lines([search_texts[position] for position in others])

    def match(self, key_pattern: Pattern, name_pattern: Pattern) -> Mask:
        """Return which sizes have a key that is like a pattern, or a name that is like another one."""
        return self._match_keys(key_pattern) | self._match(name_pattern, self._other_names, but=key_pattern)

    def contain(self, word: str) -> Mask:
        """Return which of the texts that `q` looks through have a word, which has no spaces."""
        pattern = word_pattern(word)
        endings = self._endings.among(self._ending_lines.match(pattern))
        return endings | self._match(pattern, self._other_texts)

    def _match_keys(self, pattern: Pattern) -> Mask:
        beginning = "".join(_first_letters(pattern))
        rest = pattern[len(beginning) :]
        if rest not in ((), _ANYTHING):
            return self._key_lines.match(pattern)
        first = bisect_left(self._keys, beginning)
        mask = np.zeros(len(self._keys), dtype=bool)
        if rest:
            mask[first : bisect_left(self._keys, beginning + _LAST_LETTER)] = True
        else:
            mask[first : first + 1] = self._keys[first : first + 1] == (beginning,)
        return mask

    def _match(self, pattern: Pattern, others: Lines, but: Pattern | None = None) -> Mask:
        """Return which names are like a pattern, or for those that do not end with their key, which other lines.

        Keys are not looked through for a pattern that they were compared with before.
        """
        mask = np.zeros(len(self._keys), dtype=bool)
        for beginning in self._beginnings.values:
            if beginning is not None:
                rests = patterns_after(pattern, beginning)
                begins = self._beginnings.is_any_of([beginning])
                for rest in {_ANYTHING} if _ANYTHING in rests else rests - {but}:
                    mask |= begins & self._match_keys(rest)
        if len(self._others):
            mask[self._others] = others.match(pattern)
        return mask


def _first_letters(pattern: Pattern) -> Iterator[str]:
    for one in pattern:
        if not isinstance(one, str):
            return
        yield one
