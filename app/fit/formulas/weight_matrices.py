"""Which matrices of a model the lists of a quantization name: by name, by a part of it, by a glob or by an expression.

Checkpoints of one model are named in several ways; every name is brought to one form: `layers.3.mlp.experts.0.up_proj`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb

from app.fit.formulas.architecture import Architecture, ParameterCount, count_parameters, missing_for_count
from app.fit.formulas.assumptions import Impossible
from app.fit.formulas.quantization import Coding, Part, Quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMatrix:
    """A matrix that each of some layers has: so many rows (outputs) of so many weights, and so many copies of it.

    `name` is that within a layer, `{expert}` the number of an expert; `layers` is empty of what is outside of layers.
    """

    name: str
    part: Part
    rows: int
    columns: int
    layers: range
    copies: int = 1

    @property
    def params(self) -> int:
        """The weights of one."""
        return self.rows * self.columns

    @property
    def count(self) -> int:
        """How many there are in the model."""
        return self.copies * (len(self.layers) or 1)


def weight_matrices(shape: Architecture) -> tuple[WeightMatrix, ...]:
    """List the matrices of a shape that misses nothing (missing_for_count is empty).

    Layers with experts come after the dense ones. The names are those of Hugging Face transformers.
    """
    layers, hidden, vocab = shape.known("layers", "hidden", "vocab")
    found = [*_attention(shape, range(layers))]
    dense = layers - shape.layers_with_experts
    if dense:
        found += _mlp(shape, "mlp", shape.known("intermediate")[0], range(dense))
    if shape.experts is not None and shape.expert_width is not None:
        sparse = range(dense, layers)
        found += _mlp(shape, "experts", shape.expert_width, sparse, copies=shape.experts)
        if shape.shared_intermediate:
            found += _mlp(shape, "shared_experts", shape.shared_intermediate, sparse)
    if not shape.tied_embeddings:
        found.append(WeightMatrix(name="lm_head", part="lm_head", rows=vocab, columns=hidden, layers=range(0)))
    return tuple(found)


def _attention(shape: Architecture, layers: range) -> Iterator[WeightMatrix]:
    sizes = _latent(shape) if shape.kv_lora_rank is not None else _heads(shape)
    for name, (rows, columns) in sizes.items():
        yield WeightMatrix(name=f"self_attn.{name}", part="attention", rows=rows, columns=columns, layers=layers)


def _heads(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, kv_heads, head_dim = shape.known("hidden", "heads", "kv_heads", "head_dim")
    queries, keys = heads * head_dim, kv_heads * head_dim
    inward = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden)}
    return inward | {"o_proj": (hidden, queries)}


def _latent(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, latent = shape.known("hidden", "heads", "kv_lora_rank")
    nope, rope, values = shape.known("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    rank, queries = shape.q_lora_rank, heads * (nope + rope)
    first = {"q_proj": (queries, hidden)}
    if rank is not None:
        first = {"q_a_proj": (rank, hidden), "q_b_proj": (queries, rank)}
    return first | {
        "kv_a_proj_with_mqa": (latent + rope, hidden),
        "kv_b_proj": (heads * (nope + values), latent),
        "o_proj": (hidden, heads * values),
    }


_PREFIX: dict[Part, str] = {"mlp": "mlp", "experts": "mlp.experts.{expert}", "shared_experts": "mlp.shared_experts"}


def _mlp(shape: Architecture, part: Part, width: int, layers: range, copies: int = 1) -> Iterator[WeightMatrix]:
    (hidden,) = shape.known("hidden")
    sizes = {"gate_proj": (width, hidden)} if shape.gated else {}
    for name, (rows, columns) in (sizes | {"up_proj": (width, hidden), "down_proj": (hidden, width)}).items():
        full = f"{_PREFIX[part]}.{name}"
        yield WeightMatrix(name=full, part=part, rows=rows, columns=columns, layers=layers, copies=copies)


FIELD = "config.quantization_config"

ALIASES = {
    "attn": "self_attn", "attention": "self_attn", "self_attention": "self_attn",
    "ffn": "mlp", "feed_forward": "mlp", "block_sparse_moe": "mlp", "moe": "mlp",
    "shared_expert": "shared_experts", "shared_mlp": "shared_experts",
    "w1": "gate_proj", "w3": "up_proj", "w2": "down_proj", "head": "lm_head",
}  # fmt: skip
"""Other names of the parts of a layer, and those of transformers."""
OUTER = {"language_model", "text_model", "model", "transformer"}
"""What checkpoints put before `layers`."""
PREFIXES = ("model.", "", "language_model.model.", "model.language_model.")
FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "kv_a_proj": ("kv_a_proj_with_mqa",),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""Matrices that some checkpoints store as one."""

MOST_STEPS = 20_000_000
"""A search takes some tenths of a second for so many steps; the lists of released models take less than a tenth."""
LONGEST = 64
"""No name of a matrix is longer."""
MOST_NAMES = 100_000
MOST_LETTERS = 30_000
"""Of all globs and expressions of a list; the longest of a released model has 6,000."""

_ATOM = r"(?:\\[.dws/_-]|\[\^?[\w.-]+\]|[\w./:-])(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"
_GROUP = rf"\((?:\?:)?(?:{_ATOM})*(?:\|(?:{_ATOM})*)*\)\??"
_EXPRESSION = re.compile(rf"\^?(?:{_ATOM}|{_GROUP})*\$?")
"""What is searched for: literals, classes and alternatives; a repeated group could take for ever."""
_WIDE = re.compile(r"[*+{]")
MOST_WIDE, MOST_BRANCHES = 8, 32
"""Expressions with more take too many steps, whatever else they have."""
_NUMBERED = re.compile(r"experts\W{1,2}\d")


@dataclass(frozen=True, slots=True)
class _Expression:
    """An expression, and the names of parts that it uses in place of ours."""

    found: re.Pattern[str]
    renamed: tuple[tuple[str, str], ...]
    steps: int

    def names(self, name: str) -> bool:
        other = name
        for ours, theirs in self.renamed:
            other = other.replace(ours, theirs)
        tried = {name, other}
        return any(self.found.match(prefix + one) for one, prefix in product(tried, PREFIXES))


@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of names, ready to be searched."""

    plain: frozenset[str]
    globs: re.Pattern[str] | None
    expressions: tuple[_Expression, ...]
    numbered: bool
    steps: int
    """How many steps a search takes for one name at most."""

    def __bool__(self) -> bool:
        """Whether anything is listed."""
        return bool(self.plain or self.globs or self.expressions)

    def match(self, name: str) -> bool:
        """Whether the list names a matrix, or what it is a part of."""
        if self.plain and not self.plain.isdisjoint(_runs(name)):
            return True
        if self.globs is not None and self.globs.match(name):
            return True
        return any(one.names(name) for one in self.expressions)


def _runs(name: str) -> Iterator[str]:
    """Give every run of the parts of a name: `mlp`, `mlp.experts`, `layers.3` and so on."""
    parts = name.split(".")
    return (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))


@lru_cache(maxsize=64)
def patterns(listed: tuple[str, ...]) -> Patterns:
    """Make a list ready; raises Impossible for an expression that is not understood."""
    plain: set[str] = set()
    globs: dict[str, int] = {}
    expressions: list[_Expression] = []
    if sum(len(text) for text in listed if "*" in text or "?" in text or text.startswith("re:")) > MOST_LETTERS:
        raise Impossible(FIELD, f"lists globs and expressions of more than {MOST_LETTERS} letters")
    for text in dict.fromkeys(listed):
        if text.startswith("re:"):
            expressions.append(_expression(text[3:]))
        elif "*" in text or "?" in text:
            glob = _glob(text)
            globs[glob] = _steps(glob)
        else:
            plain.update(_plain(text))
    return Patterns(
        plain=frozenset(plain),
        globs=re.compile("|".join(globs)) if globs else None,
        expressions=tuple(expressions),
        numbered=any(map(_NUMBERED.search, listed)),
        steps=sum(globs.values()) + sum(one.steps for one in expressions),
    )


def _ours(text: str) -> list[str]:
    """The parts of a name as we call them, a star at the end of each left where it stands."""
    parts = text.removesuffix(".weight").split(".")
    while len(parts) > 1 and parts[0] in OUTER:
        parts = parts[1:]
    return [ALIASES.get(part.rstrip("*"), part.rstrip("*")) + "*" * part.endswith("*") for part in parts]


def _plain(text: str) -> Iterator[str]:
    *before, last = _ours(text)
    for one in FUSED.get(last, (last,)):
        yield ".".join([*before, one])


def _glob(text: str) -> str:
    """A star stands for anything; what a glob names, it names with all that is in it, wherever it begins."""
    named = ".".join(_ours(text))
    body = re.escape(named).replace(r"\*", ".*").replace(r"\?", ".")
    anywhere = "" if named.startswith(("*", "layers.")) else r"(?:.*\.)?"
    return f"{anywhere}{body}" if named.endswith("*") else rf"{anywhere}{body}(?:\.|$)"


def _expression(text: str) -> _Expression:
    if len(text) > 500 or not _EXPRESSION.fullmatch(text):  # noqa: PLR2004  # no released list has a longer one
        known = "letters, '.', '\\.', '\\d', '\\w', '[...]', '*', '+', '?', '{n}' and (a|b) are, and no repeated group"
        raise Impossible(FIELD, f"the expression {text!r} is not understood; {known}")
    renamed = [(ours, theirs) for theirs, ours in ALIASES.items() if re.search(rf"(?<![a-z_]){theirs}(?![a-z_])", text)]
    return _Expression(re.compile(text), tuple(renamed), _steps(text) * 2 * len(PREFIXES))


def _steps(text: str) -> int:
    """How often an expression tries a name at most.

    In (n + q over q) ways for q parts of any length, twice for each part that may be missing, and for each alternative.
    """
    text = text.removesuffix(".*")
    wide = min(len(_WIDE.findall(text)), MOST_WIDE)
    branches = min(text.count("?") + text.count("|"), MOST_BRANCHES)
    return comb(LONGEST + wide, wide) * int(2**branches)


class Stores:
    """How a quantization stores each matrix."""

    def __init__(self, quantization: Quantization) -> None:
        self._parts = quantization.parts
        self._kept = patterns(quantization.kept)
        named = [group for group in quantization.groups if group.targets]
        self._groups = [(patterns(group.targets), group.coding) for group in named]
        self._rest = next((group.coding for group in quantization.groups if not group.targets), None)

    def codings(self, matrix: WeightMatrix) -> Iterator[tuple[Coding | None, int]]:
        """Give the codings of a matrix in all layers, and how many matrices have each; None is 16 bits."""
        if matrix.part not in self._parts:
            yield None, matrix.count
        elif not self._groups and not self._kept:
            yield self._rest, matrix.count
        else:
            yield from self._by_name(matrix)

    def _by_name(self, matrix: WeightMatrix) -> Iterator[tuple[Coding | None, int]]:
        lists = [self._kept, *(targets for targets, _ in self._groups)]
        apart = matrix.copies > 1 and any(one.numbered for one in lists)
        experts = range(matrix.copies if apart else 1)
        names = len(experts) * (len(matrix.layers) or 1)
        if names > MOST_NAMES or names * sum(one.steps for one in lists) > MOST_STEPS:
            raise Impossible(FIELD, "names more layers and experts by more expressions than are searched")
        for layer in matrix.layers or (None,):
            for expert in experts:
                name = matrix.name.replace("{expert}", str(expert))
                full = name if layer is None else f"layers.{layer}.{name}"
                yield self._coding(full), 1 if apart else matrix.copies

    def _coding(self, name: str) -> Coding | None:
        if self._kept.match(name):
            return None
        return next((coding for targets, coding in self._groups if targets.match(name)), self._rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes of all weights, and of the routed experts', the embeddings' and the attention's among them."""

    total: float
    experts: float = 0.0
    embeddings: float = 0.0
    attention: float = 0.0


def stored_evenly(count: ParameterCount, bits: float) -> Stored:
    """Every weight in the same bits: N bits / 8; exact."""
    size = bits / 8
    return Stored(total=count.total * size, experts=count.experts * size, embeddings=count.embeddings * size)


def stored_bytes(shape: Architecture, count: ParameterCount, quantization: Quantization) -> Stored:
    """Say what weights take: 2 N bytes, less 2 for each weight of a quantized matrix, more what that matrix takes.

    Exact for what quantizes the matrices of a layer and keeps all else in 16 bits. Where the shape does not say how
    wide they are, all but the embeddings is taken to be quantized. A number of parameters that was stated scales the
    parts. N parameters.
    """
    if missing_for_count(shape):
        return _without_matrices(count, quantization)
    counted = count_parameters(shape)
    share = count.total / counted.total
    parts: dict[Part, float] = {}
    params: dict[Part, int] = {}
    stores = Stores(quantization)
    for matrix in weight_matrices(shape):
        params[matrix.part] = params.get(matrix.part, 0) + matrix.params * matrix.count
        sizes = (_size(coding, matrix.rows, matrix.columns) * many for coding, many in stores.codings(matrix))
        parts[matrix.part] = parts.get(matrix.part, 0.0) + sum(sizes)
    beside = 2 * (counted.total - sum(params.values()))
    outside = 2 * (counted.embeddings - params.get("lm_head", 0)) + parts.get("lm_head", 0.0)
    return Stored(
        total=(beside + sum(parts.values())) * share,
        experts=parts.get("experts", 0.0) * share,
        embeddings=outside * share,
        attention=parts.get("attention", 0.0) * share,
    )


def _size(coding: Coding | None, rows: int, columns: int) -> float:
    return 2.0 * rows * columns if coding is None else coding.stored_bytes(rows, columns)


def _without_matrices(count: ParameterCount, quantization: Quantization) -> Stored:
    coding = next((group for group in quantization.groups if not group.targets), quantization.groups[0]).coding
    down, across = coding.block
    bits = coding.bits + (coding.scale_bits / (down * across) if down and across else 0.0)
    kept = 2.0 * count.embeddings
    return Stored(
        total=(count.total - count.embeddings) * bits / 8 + kept,
        experts=count.experts * bits / 8,
        embeddings=kept,
    )
