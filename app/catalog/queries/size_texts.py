"""Searches the names of all sizes, and the texts that `q` looks through, without reading the text of each size.

A name is `standard_` before a key, and a text is a name before a series and a GPU. Beginnings and endings are few, and
the keys are sorted, so that only what may be anywhere in a key is looked for in all of them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.codes import Mask, encode_texts
from app.catalog.queries.globs import Pattern, Wildcard, join_parts, patterns_after, split_pattern, word_pattern

_LINES_A_BLOCK = 2_000
_LINE_BREAK = "\n"
_LAST_LETTER = chr(0x10FFFF)
_ANYTHING: Pattern = (Wildcard.TEXT,)


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
        begins, ends = pattern[:1] != _ANYTHING, pattern[-1:] != _ANYTHING
        first, *others = split_pattern(pattern[not begins : len(pattern) - (not ends)])
        if not (first or begins or ends):
            return np.ones(self._count, dtype=bool)
        # What comes before the first letter is not searched, so that each search begins with a known one. A line that
        # does not go on as the pattern does behind the first place of its first part is passed: no later place can.
        before, behind = _LINE_BREAK if begins else "", f"(?={_LINE_BREAK})" if ends else ""
        expression = f"(?:{join_parts(['', *others])}{behind}()|[^\n]*)" if others else f"{behind}()"
        compiled = re.compile(f"{before}{first}{expression}")
        mask = np.zeros(self._count, dtype=bool)
        for number, (text, starts) in enumerate(self._blocks):
            found = [one.start() for one in compiled.finditer(text) if one.lastindex]
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
