"""Globs on names: `*` stands for any text, `?` for one character, and nothing else is special.

A glob is matched in time proportional to its length times that of the text. Runs of wildcards are put in order, `?`
before `*`, and each part between stars is looked for once, at its first place (an atomic group): a later place of it
leaves less of the text to the parts behind it, so there is nothing to come back for.
"""

import re

_RUN = re.compile(r"[*?]*\*[*?]*")
_LETTER = "[^\n]"


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression that fully matches what a glob does."""
    ordered = _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)
    first, *others = (
        "".join(_LETTER if letter == "?" else re.escape(letter) for letter in part) for part in ordered.split("*")
    )
    middle = "".join(f"(?>{_LETTER}*?{part})" for part in others[:-1])
    return re.compile(f"{first}{middle}{_LETTER}*{others[-1]}" if others else first)
