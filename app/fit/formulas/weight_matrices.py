"""The weight matrices of a model by name, and the bytes they take as a quantization stores them."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice

from app.fit.formulas.architecture import (
    Architecture,
    ParameterCount,
    count_parameters,
    layer_groups,
    missing_for_count,
)
from app.fit.formulas.quantities import InvalidWorkload
from app.fit.formulas.quantization import (
    FIELD,
    NamePatterns,
    Quantization,
    WeightFormat,
    WeightPart,
    canonical_name,
    compile_entry,
    compile_patterns,
    is_pattern,
    name_in_family,
    plain_names,
)

_ON_EVERY_RANK = frozenset(
    {"q_a_proj", "kv_a_proj_with_mqa", "kv_proj", "f_a_proj", "g_a_proj", "indexer", "compressor"}
)
"""Matrices of attention that engines do not split: the projections to the latents of MLA, indexers and compressors.

Source: vLLM, Indexer and DeepseekCompressor: ReplicatedLinear, and disable_tp.
"""


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """A matrix of `rows` (outputs) x `columns` (inputs) in each of `layers`, `copies` times per layer (one per expert).

    `name` is the name within a layer, `{expert}` in it the number of an expert; `layers` is empty for a matrix outside
    of the layers.
    """

    name: str
    part: WeightPart
    rows: int
    columns: int
    layers: Sequence[int]
    copies: int = 1

    @property
    def params(self) -> int:
        """Weights of one copy."""
        return self.rows * self.columns

    @property
    def count(self) -> int:
        """Number of copies in the whole model."""
        return self.copies * (len(self.layers) or 1)

    @property
    def on_every_rank(self) -> bool:
        """Whether every tensor rank holds it whole."""
        return self.part == "attention" and not _ON_EVERY_RANK.isdisjoint(self.name.split("."))

    @property
    def suffix(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


def weight_matrices(shape: Architecture) -> tuple[WeightMatrix, ...]:
    """Return the matrices of a complete shape (one for which missing_for_count is empty).

    The names are those of Hugging Face transformers. Cached, because a request counts them several times, and again for
    each change that may be a fix.
    """
    return _weight_matrices(replace(shape, released=None))  # its lists of names would be kept with it


@lru_cache(maxsize=64)
def _weight_matrices(shape: Architecture) -> tuple[WeightMatrix, ...]:
    matrices = [
        WeightMatrix(*matrix[:4], layers=group.numbers, copies=matrix.copies)
        for group in layer_groups(shape)
        for matrix in group.content.matrices
    ]
    hidden, vocab = shape.require("hidden", "vocab")
    if not shape.tied_embeddings:
        matrices.append(WeightMatrix("lm_head", "lm_head", vocab, hidden, layers=range(0)))
    return tuple(matrices)


def first_and_last_layer(shape: Architecture) -> tuple[str, ...]:
    """Return the names of the first and the last layer, which some checkpoints leave unquantized."""
    return tuple(f"layers.{number}" for number in (0, max(0, (shape.layers or 1) - 1)))


MAX_SEARCH_STEPS = 20_000_000
"""This many steps take some tenths of a second; the lists of released models take less than a tenth."""

MAX_NAMES = 100_000

MAX_UNMATCHED = 1_000


class MatrixFormats:
    """Looks up the format in which a quantization stores each matrix."""

    def __init__(self, quantization: Quantization) -> None:
        self._parts, self._modules = quantization.parts, quantization.modules
        self._kept = compile_patterns(quantization.unquantized)
        named = [group for group in quantization.groups if group.targets]
        self._groups = [(compile_patterns(group.targets), group.format) for group in named]
        self._rest = next((group.format for group in quantization.groups if not group.targets), None)

    def formats(self, matrix: WeightMatrix) -> Iterator[tuple[WeightFormat | None, int]]:
        """Yield each format of a matrix over all layers and experts, with its number of copies; None is 16 bits."""
        if matrix.part not in self._parts:
            yield None, matrix.count
            return
        if not self._groups and not self._kept:
            yield self._rest, matrix.count
            return
        lists = [self._kept, *(targets for targets, _ in self._groups)]
        by_number = matrix.copies > 1 and any(listed.names_experts for listed in lists)
        # Experts are named one by one only where a list distinguishes them: a model can have 384 in 61 layers.
        experts = range(matrix.copies if by_number else 1)
        number = len(experts) * (len(matrix.layers) or 1)
        if number > MAX_NAMES or number * sum(listed.steps for listed in lists) > MAX_SEARCH_STEPS:
            raise InvalidWorkload(FIELD, "names more layers and experts by more expressions than are searched")
        path = f"layers.{{layer}}.{matrix.name}" if matrix.layers else matrix.name
        path = name_in_family(path, self._modules)
        canonical = canonical_name(path)
        for layer in matrix.layers or (None,):
            for expert in experts:
                names = [
                    name.replace("{layer}", str(layer)).replace("{expert}", str(expert)) for name in (path, canonical)
                ]
                named = (fmt for targets, fmt in self._groups if targets.matches(*names))
                stored = None if self._kept.matches(*names) else next(named, self._rest)
                yield stored, 1 if by_number else matrix.copies


_NEVER_QUANTIZED = frozenset(
    {"lm_head", "head", "output", "score", "wte", "wpe", "conv1d", "A_log", "D", "dt_bias", "weights_proj", "sinks"}
)
"""Modules that are in 16 bits in every checkpoint, or of which there are no weights where they are tied."""

_NOT_COUNTED = re.compile(
    "norm|ln_|embed|router|gate_bias|shared_expert_gate|correction_bias|rotary|per_layer|"  # outside of matrices
    "vis|vit|image|img|audio|speech|modal|merger|projector|resampler|aligner|mlp1|talker|2wav|"  # other towers
    "mtp|nextn|eh_proj|shared_head|draft"  # layers that draft further tokens
)
"""Parts of names of modules that no matrix of the layers is in."""

_ROUTER = re.compile(r"(?:^|[^\w])gate(?:\.wg)?(?:\.weight)?[*$]*$")

_LAYER_NUMBER = re.compile(r"(?<![a-z_])(?:layers|h)\\?\.(\d+)(?=\\?\.(?![*+?{])|\$|$)")
_ANY_LAYER = re.compile(r"(?<![a-z_])(?:layers|h)\\?\.(\d+)")
_EXPERT_NUMBER = re.compile(r"(?<![a-z_])experts\\?\.(\d+)(?=\\?\.(?![*+?{])|\$|$)")
"""A number with a dot or nothing after it: `layers.1*` and `layers.1.*` may name others, too."""


def unmatched_names(shape: Architecture, quantization: Quantization, *, drafts: int = 0) -> tuple[str, ...]:
    """Return the entries of the list of modules in 16 bits that name no matrix of a complete shape.

    Left out are those of modules that have no matrix here: norms, routers, embeddings, other towers than that of
    the language, and `drafts` layers after the last one, which draft further tokens. The search ends at MAX_UNMATCHED
    entries; a list that takes too long to search, which `MatrixFormats` refuses, is searched in part.
    """
    names, layers = _MatrixNames(shape, quantization.modules), shape.layers or 0
    after = range(layers, layers + drafts)
    unmatched = (
        entry
        for entry in dict.fromkeys(quantization.unquantized)
        if not _has_no_matrix(entry) and _number(_ANY_LAYER, entry) not in after and not names.have(entry)
    )
    return tuple(islice(unmatched, MAX_UNMATCHED))


def _has_no_matrix(entry: str) -> bool:
    words = re.findall(r"\w+", entry)
    return (
        not _NEVER_QUANTIZED.isdisjoint(words)
        or _NOT_COUNTED.search(entry) is not None
        or _ROUTER.search(entry) is not None
    )


def _number(pattern: re.Pattern[str], entry: str) -> int:
    """Return the number of the layer or of the expert that an entry states; -1 where it states none."""
    stated = pattern.search(entry)
    return -1 if stated is None else int(stated[1])


class _MatrixNames:
    """The names of all matrices, in which the entries of a list are searched."""

    def __init__(self, shape: Architecture, modules: tuple[tuple[str, str], ...]) -> None:
        self._matrices: list[tuple[str, str, Sequence[int | None], int]] = []
        self._runs: dict[str, list[tuple[Collection[int | None], int]]] = {}
        for matrix in weight_matrices(shape):
            path = name_in_family(f"layers.{{layer}}.{matrix.name}" if matrix.layers else matrix.name, modules)
            canonical = canonical_name(path)
            self._matrices.append((path, canonical, matrix.layers or (None,), matrix.copies))
            owner, parts = (frozenset(matrix.layers), matrix.copies), canonical.split(".")
            for i, j in combinations(range(len(parts) + 1), 2):
                self._runs.setdefault(".".join(parts[i:j]), []).append(owner)
        self._steps = 0

    def have(self, entry: str) -> bool:
        """Return whether an entry names a matrix."""
        if is_pattern(entry):
            return self._steps > MAX_SEARCH_STEPS or self._searched(entry, compile_entry(entry))
        layer, expert = _number(_LAYER_NUMBER, entry), _number(_EXPERT_NUMBER, entry)
        return any(
            (layer < 0 or layer in layers) and expert < copies
            for name in plain_names(entry)
            for layers, copies in self._runs.get(self._without_numbers(name), ())
        )

    @staticmethod
    def _without_numbers(name: str) -> str:
        parts = name.split(".")
        for place, part in enumerate(parts):
            if part.isdigit():
                parts[place] = "{expert}" if place and parts[place - 1] == "experts" else "{layer}"
        return ".".join(parts)

    def _searched(self, entry: str, listed: NamePatterns) -> bool:
        """Whether a glob or an expression names a matrix; true where all took more than MAX_SEARCH_STEPS."""
        layer, expert = _number(_LAYER_NUMBER, entry), _number(_EXPERT_NUMBER, entry)
        for path, canonical, layers, copies in self._matrices:
            experts: Sequence[int] = range(copies) if listed.names_experts else (0,)
            if expert >= 0:
                experts = (expert,) if expert < copies else ()
            for number in layers if layer < 0 else [own for own in layers if own == layer]:
                for index in experts:
                    self._steps += listed.steps
                    if self._steps > MAX_SEARCH_STEPS:
                        return True
                    names = [
                        name.replace("{layer}", str(number)).replace("{expert}", str(index))
                        for name in (path, canonical)
                    ]
                    if listed.matches(*names):
                        return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBytes:
    """Bytes of all weights, and of the routed experts, the embeddings and the attention among them."""

    total: float
    experts: float = 0.0
    embeddings: float = 0.0
    attention: float = 0.0


def uniform_bytes(count: ParameterCount, bits: float) -> StoredBytes:
    """Return the bytes where every weight has the same bits: N bits / 8; exact."""
    size = bits / 8
    return StoredBytes(total=count.total * size, experts=count.experts * size, embeddings=count.embeddings * size)


def quantized_bytes(shape: Architecture, count: ParameterCount, quantization: Quantization) -> StoredBytes:
    """Return the bytes of the weights: 2 N, less 2 per weight of a quantized matrix, plus the bytes of that matrix.

    Exact for a quantization of the matrices of the layers with everything else in 16 bits. Where the widths of the
    matrices are unknown, everything but the embeddings is taken to be quantized. N parameters; a stated N scales the
    parts. Cached, because each change of a request that is tried for each size asks for the same.
    """
    of_layers = replace(shape, released=None)  # its lists of names would be kept with it
    return (_kept_bytes if quantization.is_kept else _long_bytes)(of_layers, count, quantization)


def _quantized_bytes(shape: Architecture, count: ParameterCount, quantization: Quantization) -> StoredBytes:
    if missing_for_count(shape):
        return _quantized_bytes_by_count(count, quantization)
    counted = count_parameters(shape)
    share = count.total / counted.total
    parts: dict[WeightPart, float] = {}
    params: dict[WeightPart, int] = {}
    stores = MatrixFormats(quantization)
    for matrix in weight_matrices(shape):
        params[matrix.part] = params.get(matrix.part, 0) + matrix.params * matrix.count
        sizes = (
            (2.0 * matrix.params if fmt is None else fmt.stored_bytes(matrix.rows, matrix.columns)) * many
            for fmt, many in stores.formats(matrix)
        )
        parts[matrix.part] = parts.get(matrix.part, 0.0) + sum(sizes)
    beside = 2 * (counted.total - sum(params.values()))
    outside = 2 * (counted.embeddings - params.get("lm_head", 0)) + parts.get("lm_head", 0.0)
    return StoredBytes(
        total=(beside + sum(parts.values())) * share,
        experts=parts.get("experts", 0.0) * share,
        embeddings=outside * share,
        attention=parts.get("attention", 0.0) * share,
    )


_kept_bytes = lru_cache(maxsize=128)(_quantized_bytes)
_long_bytes = lru_cache(maxsize=2)(_quantized_bytes)
"""For the request that is being answered, whose quantization has long lists."""


def _quantized_bytes_by_count(count: ParameterCount, quantization: Quantization) -> StoredBytes:
    fmt = next((group for group in quantization.groups if not group.targets), quantization.groups[0]).format
    down, across = fmt.block
    bits = fmt.bits + (fmt.scale_bits / (down * across) if down and across else 0.0)
    kept = 2.0 * count.embeddings
    return StoredBytes(
        total=(count.total - count.embeddings) * bits / 8 + kept,
        experts=count.experts * bits / 8,
        embeddings=kept,
    )
