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
from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.quantization import Quantization, WeightFormat, WeightPart


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMatrix:
    """A matrix that each of some layers has: so many rows (outputs) of so many weights, and so many copies of it.

    `name` is that within a layer, `{expert}` the number of an expert; `layers` is empty of what is outside of layers.
    """

    name: str
    part: WeightPart
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
    layers, hidden, vocab = shape.require("layers", "hidden", "vocab")
    found = [*_attention_matrices(shape, range(layers))]
    dense = layers - shape.layers_with_experts
    if dense:
        found += _mlp_matrices(shape, "mlp", shape.require("intermediate")[0], range(dense))
    if shape.experts is not None and shape.expert_width is not None:
        sparse = range(dense, layers)
        found += _mlp_matrices(shape, "experts", shape.expert_width, sparse, copies=shape.experts)
        if shape.shared_intermediate:
            found += _mlp_matrices(shape, "shared_experts", shape.shared_intermediate, sparse)
    if not shape.tied_embeddings:
        found.append(WeightMatrix(name="lm_head", part="lm_head", rows=vocab, columns=hidden, layers=range(0)))
    return tuple(found)


def _attention_matrices(shape: Architecture, layers: range) -> Iterator[WeightMatrix]:
    sizes = _mla_sizes(shape) if shape.kv_lora_rank is not None else _attention_sizes(shape)
    for name, (rows, columns) in sizes.items():
        yield WeightMatrix(name=f"self_attn.{name}", part="attention", rows=rows, columns=columns, layers=layers)


def _attention_sizes(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, kv_heads, head_dim = shape.require("hidden", "heads", "kv_heads", "head_dim")
    queries, keys = heads * head_dim, kv_heads * head_dim
    inward = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden)}
    return inward | {"o_proj": (hidden, queries)}


def _mla_sizes(shape: Architecture) -> dict[str, tuple[int, int]]:
    hidden, heads, latent = shape.require("hidden", "heads", "kv_lora_rank")
    nope, rope, values = shape.require("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    rank, queries = shape.q_lora_rank, heads * (nope + rope)
    first = {"q_proj": (queries, hidden)}
    if rank is not None:
        first = {"q_a_proj": (rank, hidden), "q_b_proj": (queries, rank)}
    return first | {
        "kv_a_proj_with_mqa": (latent + rope, hidden),
        "kv_b_proj": (heads * (nope + values), latent),
        "o_proj": (hidden, heads * values),
    }


_MLP_PREFIXES: dict[WeightPart, str] = {
    "mlp": "mlp",
    "experts": "mlp.experts.{expert}",
    "shared_experts": "mlp.shared_experts",
}


def _mlp_matrices(
    shape: Architecture, part: WeightPart, width: int, layers: range, copies: int = 1
) -> Iterator[WeightMatrix]:
    (hidden,) = shape.require("hidden")
    sizes = {"gate_proj": (width, hidden)} if shape.has_gated_mlp else {}
    for name, (rows, columns) in (sizes | {"up_proj": (width, hidden), "down_proj": (hidden, width)}).items():
        full = f"{_MLP_PREFIXES[part]}.{name}"
        yield WeightMatrix(name=full, part=part, rows=rows, columns=columns, layers=layers, copies=copies)


FIELD = "config.quantization_config"

NAME_ALIASES = {
    "attn": "self_attn", "attention": "self_attn", "self_attention": "self_attn",
    "ffn": "mlp", "feed_forward": "mlp", "block_sparse_moe": "mlp", "moe": "mlp",
    "shared_expert": "shared_experts", "shared_mlp": "shared_experts",
    "w1": "gate_proj", "w3": "up_proj", "w2": "down_proj", "head": "lm_head",
}  # fmt: skip
"""Other names of the parts of a layer, and those of transformers."""
OUTER_MODULES = {"language_model", "text_model", "model", "transformer"}
"""What checkpoints put before `layers`."""
NAME_PREFIXES = ("model.", "", "language_model.model.", "model.language_model.")
FUSED_MATRICES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "kv_a_proj": ("kv_a_proj_with_mqa",),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""Matrices that some checkpoints store as one."""

MAX_SEARCH_STEPS = 20_000_000
"""A search takes some tenths of a second for so many steps; the lists of released models take less than a tenth."""
MAX_NAME_LENGTH = 64
"""No name of a matrix is longer."""
MAX_NAMES = 100_000
MAX_PATTERN_LENGTH = 30_000
"""Of all globs and expressions of a list; the longest of a released model has 6,000."""

_ATOM = r"(?:\\[.dws/_-]|\[\^?[\w.-]+\]|[\w./:-])(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})?"
_GROUP = rf"\((?:\?:)?(?:{_ATOM})*(?:\|(?:{_ATOM})*)*\)\??"
_SAFE_REGEX = re.compile(rf"\^?(?:{_ATOM}|{_GROUP})*\$?")
"""What is searched for: literals, classes and alternatives; a repeated group could take for ever."""
_REPETITION = re.compile(r"[*+{]")
MAX_REPETITIONS, MAX_BRANCHES = 8, 32
"""Expressions with more take too many steps, whatever else they have."""
_EXPERT_NUMBER = re.compile(r"experts\W{1,2}\d")


@dataclass(frozen=True, slots=True)
class _Regex:
    """An expression, and the names of parts that it uses in place of ours."""

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
    """A list of names, ready to be searched."""

    names: frozenset[str]
    globs: re.Pattern[str] | None
    regexes: tuple[_Regex, ...]
    names_experts: bool
    steps: int
    """How many steps a search takes for one name at most."""

    def __bool__(self) -> bool:
        """Whether anything is listed."""
        return bool(self.names or self.globs or self.regexes)

    def matches(self, name: str) -> bool:
        """Whether the list names a matrix, or what it is a part of."""
        if self.names and not self.names.isdisjoint(_name_segments(name)):
            return True
        if self.globs is not None and self.globs.match(name):
            return True
        return any(one.matches(name) for one in self.regexes)


def _name_segments(name: str) -> Iterator[str]:
    """Give every run of the parts of a name: `mlp`, `mlp.experts`, `layers.3` and so on."""
    parts = name.split(".")
    return (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))


@lru_cache(maxsize=64)
def compile_patterns(listed: tuple[str, ...]) -> NamePatterns:
    """Make a list ready; raises InvalidWorkload for an expression that is not understood."""
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
    """The parts of a name as we call them, a star at the end of each left where it stands."""
    parts = text.removesuffix(".weight").split(".")
    while len(parts) > 1 and parts[0] in OUTER_MODULES:
        parts = parts[1:]
    return [NAME_ALIASES.get(part.rstrip("*"), part.rstrip("*")) + "*" * part.endswith("*") for part in parts]


def _canonical_names(text: str) -> Iterator[str]:
    *before, last = _canonical_parts(text)
    for one in FUSED_MATRICES.get(last, (last,)):
        yield ".".join([*before, one])


def _glob_to_regex(text: str) -> str:
    """A star stands for anything; what a glob names, it names with all that is in it, wherever it begins."""
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
    """How often an expression tries a name at most.

    In (n + q over q) ways for q parts of any length, twice for each part that may be missing, and for each alternative.
    """
    text = text.removesuffix(".*")
    wide = min(len(_REPETITION.findall(text)), MAX_REPETITIONS)
    branches = min(text.count("?") + text.count("|"), MAX_BRANCHES)
    return comb(MAX_NAME_LENGTH + wide, wide) * int(2**branches)


class MatrixFormats:
    """How a quantization stores each matrix."""

    def __init__(self, quantization: Quantization) -> None:
        self._parts = quantization.parts
        self._kept = compile_patterns(quantization.unquantized)
        named = [group for group in quantization.groups if group.targets]
        self._groups = [(compile_patterns(group.targets), group.format) for group in named]
        self._rest = next((group.format for group in quantization.groups if not group.targets), None)

    def formats(self, matrix: WeightMatrix) -> Iterator[tuple[WeightFormat | None, int]]:
        """Give the codings of a matrix in all layers, and how many matrices have each; None is 16 bits."""
        if matrix.part not in self._parts:
            yield None, matrix.count
        elif not self._groups and not self._kept:
            yield self._rest, matrix.count
        else:
            yield from self._formats_by_name(matrix)

    def _formats_by_name(self, matrix: WeightMatrix) -> Iterator[tuple[WeightFormat | None, int]]:
        lists = [self._kept, *(targets for targets, _ in self._groups)]
        apart = matrix.copies > 1 and any(one.names_experts for one in lists)
        experts = range(matrix.copies if apart else 1)
        names = len(experts) * (len(matrix.layers) or 1)
        if names > MAX_NAMES or names * sum(one.steps for one in lists) > MAX_SEARCH_STEPS:
            raise InvalidWorkload(FIELD, "names more layers and experts by more expressions than are searched")
        for layer in matrix.layers or (None,):
            for expert in experts:
                name = matrix.name.replace("{expert}", str(expert))
                full = name if layer is None else f"layers.{layer}.{name}"
                yield self._format(full), 1 if apart else matrix.copies

    def _format(self, name: str) -> WeightFormat | None:
        if self._kept.matches(name):
            return None
        return next((coding for targets, coding in self._groups if targets.matches(name)), self._rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBytes:
    """Bytes of all weights, and of the routed experts', the embeddings' and the attention's among them."""

    total: float
    experts: float = 0.0
    embeddings: float = 0.0
    attention: float = 0.0


def uniform_bytes(count: ParameterCount, bits: float) -> StoredBytes:
    """Every weight in the same bits: N bits / 8; exact."""
    size = bits / 8
    return StoredBytes(total=count.total * size, experts=count.experts * size, embeddings=count.embeddings * size)


def quantized_bytes(shape: Architecture, count: ParameterCount, quantization: Quantization) -> StoredBytes:
    """Say what weights take: 2 N bytes, less 2 for each weight of a quantized matrix, more what that matrix takes.

    Exact for what quantizes the matrices of a layer and keeps all else in 16 bits. Where the shape does not say how
    wide they are, all but the embeddings is taken to be quantized. A number of parameters that was stated scales the
    parts. N parameters.
    """
    if missing_for_count(shape):
        return _quantized_bytes_by_count(count, quantization)
    counted = count_parameters(shape)
    share = count.total / counted.total
    parts: dict[WeightPart, float] = {}
    params: dict[WeightPart, int] = {}
    stores = MatrixFormats(quantization)
    for matrix in weight_matrices(shape):
        params[matrix.part] = params.get(matrix.part, 0) + matrix.params * matrix.count
        sizes = (_matrix_bytes(coding, matrix.rows, matrix.columns) * many for coding, many in stores.formats(matrix))
        parts[matrix.part] = parts.get(matrix.part, 0.0) + sum(sizes)
    beside = 2 * (counted.total - sum(params.values()))
    outside = 2 * (counted.embeddings - params.get("lm_head", 0)) + parts.get("lm_head", 0.0)
    return StoredBytes(
        total=(beside + sum(parts.values())) * share,
        experts=parts.get("experts", 0.0) * share,
        embeddings=outside * share,
        attention=parts.get("attention", 0.0) * share,
    )


def _matrix_bytes(coding: WeightFormat | None, rows: int, columns: int) -> float:
    return 2.0 * rows * columns if coding is None else coding.stored_bytes(rows, columns)


def _quantized_bytes_by_count(count: ParameterCount, quantization: Quantization) -> StoredBytes:
    coding = next((group for group in quantization.groups if not group.targets), quantization.groups[0]).format
    down, across = coding.block
    bits = coding.bits + (coding.scale_bits / (down * across) if down and across else 0.0)
    kept = 2.0 * count.embeddings
    return StoredBytes(
        total=(count.total - count.embeddings) * bits / 8 + kept,
        experts=count.experts * bits / 8,
        embeddings=kept,
    )
