"""Matches weight matrices against the module lists of a quantization: names, parts of names, globs and regexes.

Checkpoints name the same matrix in several ways; all names are normalized to `layers.3.mlp.experts.0.up_proj`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb

from app.fit.formulas.assumptions import InvalidWorkload

FIELD = "config.quantization_config"

NAME_ALIASES = {
    "attn": "self_attn", "attention": "self_attn", "self_attention": "self_attn",
    "ffn": "mlp", "feed_forward": "mlp", "block_sparse_moe": "mlp", "moe": "mlp",
    "shared_expert": "shared_experts", "shared_mlp": "shared_experts",
    "w1": "gate_proj", "w3": "up_proj", "w2": "down_proj", "head": "lm_head",
}  # fmt: skip
"""Other names of the parts of a layer, and the names that Hugging Face transformers uses."""

OUTER_MODULES = {"language_model", "text_model", "model", "transformer"}
"""What checkpoints write before `layers`."""

NAME_PREFIXES = ("model.", "", "language_model.model.", "model.language_model.")

FUSED_MATRICES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "kv_a_proj": ("kv_a_proj_with_mqa",),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""Matrices that some checkpoints store as one."""

MAX_NAME_LENGTH = 64
"""No name of a matrix is longer; bounds the steps of a search."""

MAX_PATTERN_LENGTH = 30_000
"""Most characters of all globs and regexes of a list; the longest list of a released model has 6,000."""

_ATOM = r"(?:\\[.dws/_-]|\[\^?[\w.-]+\]|[\w./:-])(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"

_GROUP = rf"\((?:\?:)?(?:{_ATOM})*(?:\|(?:{_ATOM})*)*\)\??"

_SAFE_REGEX = re.compile(rf"\^?(?:{_ATOM}|{_GROUP})*\$?")
"""Regexes that are accepted: literals, classes and alternatives.

The regexes come from clients; a repeated group could backtrack for ever (ReDoS).
"""

_REPETITION = re.compile(r"[*+{]")

MAX_REPETITIONS, MAX_BRANCHES = 8, 32
"""A regex with more takes too many steps, whatever else it contains."""

_EXPERT_NUMBER = re.compile(r"experts\W{1,2}\d")


@dataclass(frozen=True, slots=True)
class _Regex:
    """A regex, and the normalized names with those that the regex uses in place of them."""

    pattern: re.Pattern[str]
    replacements: tuple[tuple[str, str], ...]
    steps: int

    def matches(self, name: str) -> bool:
        other = name
        for ours, theirs in self.replacements:
            other = other.replace(ours, theirs)
        tried = {name, other}
        return any(self.pattern.match(prefix + one) for one, prefix in product(tried, NAME_PREFIXES))


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """A compiled list of names, globs and regexes."""

    names: frozenset[str]
    globs: re.Pattern[str] | None
    regexes: tuple[_Regex, ...]
    names_experts: bool
    steps: int
    """Most steps that matching one name takes."""

    def __bool__(self) -> bool:
        """Return whether anything is listed."""
        return bool(self.names or self.globs or self.regexes)

    def matches(self, name: str) -> bool:
        """Return whether the list names a matrix, or a module that contains it."""
        if self.names and not self.names.isdisjoint(_name_segments(name)):
            return True
        if self.globs is not None and self.globs.match(name):
            return True
        return any(one.matches(name) for one in self.regexes)


def _name_segments(name: str) -> Iterator[str]:
    """Yield every run of consecutive parts of a name: `mlp`, `mlp.experts`, `layers.3` and so on."""
    parts = name.split(".")
    return (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))


@lru_cache(maxsize=64)
def compile_patterns(listed: tuple[str, ...]) -> NamePatterns:
    """Compile a list; raise InvalidWorkload for a regex that is not accepted."""
    plain: set[str] = set()
    globs: dict[str, int] = {}
    expressions: list[_Regex] = []
    if sum(len(text) for text in listed if "*" in text or "?" in text or text.startswith("re:")) > MAX_PATTERN_LENGTH:
        raise InvalidWorkload(FIELD, f"lists globs and expressions of more than {MAX_PATTERN_LENGTH} letters")
    for text in dict.fromkeys(listed):
        if text.startswith("re:"):
            expressions.append(_compile_regex(text[3:]))
        elif "*" in text or "?" in text:
            glob = _glob_to_regex(text)
            globs[glob] = _max_steps(glob)
        else:
            plain.update(_canonical_names(text))
    return NamePatterns(
        names=frozenset(plain),
        globs=re.compile("|".join(globs)) if globs else None,
        regexes=tuple(expressions),
        names_experts=any(map(_EXPERT_NUMBER.search, listed)),
        steps=sum(globs.values()) + sum(one.steps for one in expressions),
    )


def _canonical_parts(text: str) -> list[str]:
    """Return the normalized parts of a name; a star at the end of a part stays."""
    # Only leading wrappers go: "model" inside a name may be a real module.
    parts = text.removesuffix(".weight").split(".")
    while len(parts) > 1 and parts[0] in OUTER_MODULES:
        parts = parts[1:]
    return [NAME_ALIASES.get(part.rstrip("*"), part.rstrip("*")) + "*" * part.endswith("*") for part in parts]


def _canonical_names(text: str) -> Iterator[str]:
    *before, last = _canonical_parts(text)
    for one in FUSED_MATRICES.get(last, (last,)):
        yield ".".join([*before, one])


def _glob_to_regex(text: str) -> str:
    """Return the regex of a glob: a star matches anything, a module matches with all it contains, at any depth."""
    named = ".".join(_canonical_parts(text))
    body = re.escape(named).replace(r"\*", ".*").replace(r"\?", ".")
    anywhere = "" if named.startswith(("*", "layers.")) else r"(?:.*\.)?"
    return f"{anywhere}{body}" if named.endswith("*") else rf"{anywhere}{body}(?:\.|$)"


def _compile_regex(text: str) -> _Regex:
    if len(text) > 500 or not _SAFE_REGEX.fullmatch(text):  # noqa: PLR2004  # no released list has a longer one
        known = "letters, '.', '\\.', '\\d', '\\w', '[...]', '*', '+', '?', '{n}' and (a|b) are, and no repeated group"
        raise InvalidWorkload(FIELD, f"the expression {text!r} is not understood; {known}")
    renamed = [
        (ours, theirs) for theirs, ours in NAME_ALIASES.items() if re.search(rf"(?<![a-z_]){theirs}(?![a-z_])", text)
    ]
    return _Regex(re.compile(text), tuple(renamed), _max_steps(text) * 2 * len(NAME_PREFIXES))


def _max_steps(text: str) -> int:
    """Return the most steps in which a regex is tried against a name.

    There are (n + q over q) ways to place q repetitions in n characters; each optional part or alternative doubles
    them.
    """
    text = text.removesuffix(".*")
    wide = min(len(_REPETITION.findall(text)), MAX_REPETITIONS)
    branches = min(text.count("?") + text.count("|"), MAX_BRANCHES)
    return comb(MAX_NAME_LENGTH + wide, wide) * int(2**branches)
