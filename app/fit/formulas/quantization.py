"""Quantized checkpoints: the format of each group of weight matrices with its scales, and what stays in 16 bits.

Module lists of a quantization name matrices by name, part of a name, glob or regex; `compile_patterns` matches them.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, comb
from typing import Literal

from app.fit.formulas.quantities import InvalidWorkload

FULL_BITS: dict[str, float] = {
    "fp32": 32, "tf32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4, "fp4": 4,
}  # fmt: skip
"""Bits of a value. Below 16 bits: of a weight without its scales, and some weights stay in 16 bits."""

QUANTIZED_BITS: dict[str, float] = {
    "nf4": 4.5,
    "nf4_dq": 4.127,
    "gptq_int4": 4.203125,
    "awq_int4": 4.203125,
    "mxfp4": 4.25,
    "nvfp4": 4.5,
}
"""Bits of a quantized weight with its scales; embeddings, output layer, norms and routers stay 16-bit.

NF4 in blocks of 64, and with double quantization, saving 0.373 bits: QLoRA, arXiv 2305.14314, section 3. GPTQ and AWQ
in groups of 128 with a 16-bit scale and a zero point of 4 bits (4.156) to 16 (4.25): between the two. MXFP4 in blocks
of 32 with an 8-bit scale: OCP MX 1.0. NVFP4 in blocks of 16 with an 8-bit scale.
"""

FILE_BITS: dict[str, float] = {
    "gguf_iq1_s": 2.0042, "gguf_iq1_m": 2.1460, "gguf_iq2_xxs": 2.3824, "gguf_iq2_xs": 2.5882, "gguf_iq2_s": 2.7403,
    "gguf_iq2_m": 2.9294, "gguf_iq3_xxs": 3.2548, "gguf_iq3_xs": 3.4977, "gguf_iq3_s": 3.6606, "gguf_iq3_m": 3.7628,
    "gguf_iq4_xs": 4.4597, "gguf_iq4_nl": 4.6818, "gguf_q2_k_s": 2.9697, "gguf_q2_k": 3.1593, "gguf_q3_k_s": 3.6429,
    "gguf_q3_k_m": 3.9960, "gguf_q3_k_l": 4.2979, "gguf_q4_k_s": 4.6672, "gguf_q4_k_m": 4.8944, "gguf_q5_k_s": 5.5704,
    "gguf_q5_k_m": 5.7036, "gguf_q6_k": 6.5633, "gguf_q8_0": 8.5008, "gguf_f16": 16.0005,
}  # fmt: skip
"""Bits a weight of a whole GGUF file, embeddings included, as measured on Llama-3.1-8B.

Source: llama.cpp, tools/quantize/README.md. Another model mixes its tensors in other shares: an estimate.
"""

BITS = FULL_BITS | QUANTIZED_BITS | FILE_BITS
"""Bits per weight of every named type of weights."""

KV_BITS: dict[str, float] = {
    "fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4, "fp4": 4, "nvfp4": 4.5, "gguf_q8_0": 8.5,
    "gguf_q4_0": 4.5,
}  # fmt: skip
"""Bits of a value in every type that an engine keeps a KV cache in.

vLLM: CacheDType in config/cache.py. SGLang: fp4 in its guide to quantized KV caches. llama.cpp: --cache-type-k, in
blocks of 32 with a 16-bit scale.
"""

ALIASES = {
    "float32": "fp32", "float": "fp32", "single": "fp32", "32bit": "fp32", "float16": "fp16", "half": "fp16",
    "bfloat16": "bf16", "float8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8", "float8_e4m3": "fp8", "float8_e5m2": "fp8", "awq": "awq_int4", "gptq": "gptq_int4",
    "float4": "fp4", "mx4": "mxfp4", "nvfp": "nvfp4",
}  # fmt: skip
"""Types by other common names."""


def to_dtype(text: str, types: Collection[str] = BITS.keys()) -> str:
    """Return the type of a name in any case and common spelling: `Q4_K_M`, `float16`; other names in lower case."""
    name = re.sub(r"^(\d+)_bits?$", r"\1bit", text.strip().lower().replace("-", "_"))
    return next(
        (candidate for candidate in (name, ALIASES.get(name, name), f"gguf_{name}") if candidate in types), name
    )


FIELD = "config.quantization_config"

NAME_ALIASES = {
    "attn": "self_attn", "attention": "self_attn", "self_attention": "self_attn",
    "ffn": "mlp", "feed_forward": "mlp", "block_sparse_moe": "mlp", "moe": "mlp",
    "shared_expert": "shared_experts", "shared_mlp": "shared_experts",
    "w1": "gate_proj", "w3": "up_proj", "w2": "down_proj", "head": "lm_head",
}  # fmt: skip
"""Other names of the parts of a layer, and the names that Hugging Face transformers uses."""

OUTER_MODULES = {"language_model", "text_model", "model", "transformer", "backbone", "decoder", "gpt_neox"}
"""What checkpoints write before `layers`."""

NAME_PREFIXES = ("model.", "", "language_model.model.", "model.language_model.", "backbone.")

FUSED_MATRICES = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "kv_a_proj": ("kv_a_proj_with_mqa",),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
"""Matrices that some checkpoints store as one."""

_GPT2_MODULES: dict[str, tuple[str, ...]] = {
    "transformer.h": ("layers",),
    "attn.c_attn": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attn.c_proj": ("self_attn.o_proj",),
    "mlp.c_fc": ("mlp.up_proj",),
    "mlp.c_proj": ("mlp.down_proj",),
}
_BLOOM_MODULES: dict[str, tuple[str, ...]] = {
    "transformer.h": ("layers",),
    "self_attention.query_key_value": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.dense": ("self_attn.o_proj",),
    "mlp.dense_h_to_4h": ("mlp.up_proj",),
    "mlp.dense_4h_to_h": ("mlp.down_proj",),
}
_LFM2_MODULES: dict[str, tuple[str, ...]] = {
    "self_attn.out_proj": ("self_attn.o_proj",),
    "w1": ("gate_proj",),
    "w3": ("up_proj",),
    "w2": ("down_proj",),
}

FAMILY_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "qwen3_next": {
        "linear_attn.in_proj_qkvz": ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z"),
        "linear_attn.in_proj_ba": ("linear_attn.in_proj_b", "linear_attn.in_proj_a"),
    },
    "nemotron_h": {"mixer": ("self_attn",)},
    "granitemoehybrid": {
        "mamba": ("mixer",),
        "block_sparse_moe.input_linear": ("mlp.experts.{expert}.gate_proj", "mlp.experts.{expert}.up_proj"),
        "block_sparse_moe.output_linear": ("mlp.experts.{expert}.down_proj",),
        "shared_mlp.input_linear": (
            *("mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"),
            *("mlp.gate_proj", "mlp.up_proj"),
        ),
        "shared_mlp.output_linear": ("mlp.shared_experts.down_proj", "mlp.down_proj"),
    },
    "falcon_h1": {"mamba": ("mixer",)},
    "gemma4_text": {"experts": ("layer.experts",)},
    "lfm2": _LFM2_MODULES,
    "lfm2_moe": _LFM2_MODULES,
    "phi3": {
        "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
    },
    "gpt2": _GPT2_MODULES,
    "gpt_bigcode": _GPT2_MODULES,
    "gptj": {
        "transformer.h": ("layers",),
        "attn": ("self_attn",),
        "out_proj": ("o_proj",),
        "fc_in": ("up_proj",),
        "fc_out": ("down_proj",),
    },
    "bloom": _BLOOM_MODULES,
    "falcon": _BLOOM_MODULES,
    "gpt_neox": {
        "gpt_neox.layers": ("layers",),
        "attention.query_key_value": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "attention.dense": ("self_attn.o_proj",),
        "mlp.dense_h_to_4h": ("mlp.up_proj",),
        "mlp.dense_4h_to_h": ("mlp.down_proj",),
    },
    "opt": {
        "decoder.layers": ("layers",),
        "self_attn.out_proj": ("self_attn.o_proj",),
        "fc1": ("mlp.up_proj",),
        "fc2": ("mlp.down_proj",),
    },
    "phi": {"self_attn.dense": ("self_attn.o_proj",), "mlp.fc1": ("mlp.up_proj",), "mlp.fc2": ("mlp.down_proj",)},
    "starcoder2": {"mlp.c_fc": ("mlp.up_proj",), "mlp.c_proj": ("mlp.down_proj",)},
}
"""By type, the names in its checkpoints of modules that are named differently here, and the names here.

Source: the modelling code of transformers 5.23.
"""

MAX_NAME_LENGTH = 64
"""No name of a matrix is longer; bounds the steps of a search."""

MAX_PATTERN_LENGTH = 30_000
"""Most characters of all globs and regexes of a list; the longest list of a released model has 6,000."""

MAX_NAME_CHARACTERS = 500
"""Most characters of a name or expression of a list; no released list has a longer one."""

MAX_KEPT_NAMES = 1_000
"""What is computed from longer lists of names is not kept for later requests: one can have megabytes."""

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
        return any(self.pattern.match(prefix + spelling) for spelling, prefix in product(tried, NAME_PREFIXES))


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

    def matches(self, name: str, canonical: str) -> bool:
        """Return whether the list names a matrix, or a module that contains it: by its name and its canonical name."""
        if self.names:
            parts = canonical.split(".")
            # Every run of parts: `mlp`, `mlp.experts`, `layers.3` and so on.
            runs = (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
            if not self.names.isdisjoint(runs):
                return True
        if self.globs is not None and self.globs.match(canonical):
            return True
        return any(regex.matches(name) for regex in self.regexes)


def compile_patterns(listed: tuple[str, ...]) -> NamePatterns:
    """Compile a list, once for those who ask again; raise InvalidWorkload for a regex that is not accepted."""
    return _compile_kept(listed) if len(listed) <= MAX_KEPT_NAMES else _compile_long(listed)


def _compile(listed: tuple[str, ...]) -> NamePatterns:
    plain: set[str] = set()
    globs: dict[str, int] = {}
    expressions: dict[str, _Regex] = {}
    if sum(len(text) for text in listed if is_pattern(text)) > MAX_PATTERN_LENGTH:
        raise InvalidWorkload(FIELD, f"lists globs and expressions of more than {MAX_PATTERN_LENGTH} letters")
    for text in listed:
        if len(text) > MAX_NAME_CHARACTERS:
            detail = f"lists a name of {len(text):,} characters; at most {MAX_NAME_CHARACTERS} are read"
            raise InvalidWorkload(FIELD, detail)
        if text.startswith("re:"):
            if text not in expressions:
                expressions[text] = _compile_regex(text[3:])
        elif "*" in text or "?" in text:
            glob = _glob_to_regex(text)
            globs[glob] = _max_steps(glob)
        else:
            plain.update(plain_names(text))
    return NamePatterns(
        names=frozenset(plain),
        globs=re.compile("|".join(globs)) if globs else None,
        regexes=tuple(expressions.values()),
        names_experts=any(_EXPERT_NUMBER.search(text) for text in listed),  # in steps, not all in C by map
        steps=sum(globs.values()) + sum(regex.steps for regex in expressions.values()),
    )


_compile_kept = lru_cache(maxsize=64)(_compile)
_compile_long = lru_cache(maxsize=2)(_compile)
"""For the lists of the request that is being answered."""


def name_in_family(name: str, modules: tuple[tuple[str, str], ...]) -> str:
    """Return the name that the checkpoints of a family have for a matrix: `modules` are pairs of a name here and there.

    A name stands for whole parts between dots.
    """
    for ours, theirs in modules:
        name = f".{name}.".replace(f".{ours}.", f".{theirs}.")[1:-1]
    return name


def modules_of_family(model_type: str) -> tuple[tuple[str, str], ...]:
    """Return the names here and in the checkpoints of a family, where they differ."""
    modules = FAMILY_MODULES.get(model_type, {})
    return tuple((ours, theirs) for theirs, named in modules.items() for ours in named)


def canonical_name(name: str) -> str:
    """Return a name with the usual names of its parts, without what wraps the layers."""
    return ".".join(_canonical_parts(name))


def plain_names(text: str) -> list[str]:
    """Return the canonical names of what a name that is neither a glob nor a regex stands for."""
    *before, last = _canonical_parts(text)
    return [".".join([*before, part]) for part in FUSED_MATRICES.get(last, (last,))]


def is_pattern(text: str) -> bool:
    """Whether an entry of a list is a glob or a regex."""
    return "*" in text or "?" in text or text.startswith("re:")


def compile_entry(text: str) -> NamePatterns:
    """Compile one entry of a list; raise InvalidWorkload for a regex that is not accepted."""
    return _compile((text,))


def _canonical_parts(text: str) -> list[str]:
    """Return the normalized parts of a name; a star at the end of a part stays."""
    # Only leading wrappers go: "model" inside a name may be a real module.
    parts = text.removesuffix(".weight").split(".")
    while len(parts) > 1 and parts[0] in OUTER_MODULES:
        parts = parts[1:]
    return [NAME_ALIASES.get(part.rstrip("*"), part.rstrip("*")) + "*" * part.endswith("*") for part in parts]


def _glob_to_regex(text: str) -> str:
    """Return the regex of a glob: a star matches anything, a module matches with all it contains, at any depth."""
    named = ".".join(_canonical_parts(text))
    body = re.escape(named).replace(r"\*", ".*").replace(r"\?", ".")
    anywhere = "" if named.startswith(("*", "layers.")) else r"(?:.*\.)?"
    return f"{anywhere}{body}" if named.endswith("*") else rf"{anywhere}{body}(?:\.|$)"


def _compile_regex(text: str) -> _Regex:
    if not _SAFE_REGEX.fullmatch(text):
        syntax = "letters, '.', '\\.', '\\d', '\\w', '[...]', '*', '+', '?', '{n}' and (a|b) are, and no repeated group"
        raise InvalidWorkload(FIELD, f"the expression {text!r} is not understood; {syntax}")
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


WeightPart = Literal["attention", "mlp", "shared_experts", "experts", "lm_head"]
"""The part of a model that a weight matrix belongs to; embeddings, norms, routers, biases and sinks are in none."""

DtypeSource = Literal["request", "preset", "quantization_config", "dtype", "torch_dtype", "safetensors", "default"]
"""Where the type of the weights comes from: the request, the preset, a field of the configuration, the tensors of a
checkpoint, or a default."""

LAYER_PARTS: frozenset[WeightPart] = frozenset({"attention", "mlp", "shared_experts", "experts"})
ALL_PARTS: frozenset[WeightPart] = LAYER_PARTS | {"lm_head"}
EXPERT_PARTS: frozenset[WeightPart] = frozenset({"experts"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """How a matrix is stored: bits per weight, and bits of the scale (with its zero point) that each block shares.

    `block` is the rows and columns of a block; 0 is all of them: (1, 0) is a scale for each row, (0, 0) one for the
    matrix, (1, 128) one for 128 weights of a row.
    """

    dtype: str
    bits: float
    scale_bits: float = 0.0
    block: tuple[int, int] = (0, 0)

    def stored_bytes(self, rows: int, columns: int) -> float:
        """Return the bytes of a matrix: (r c bits + ceil(r / b_r) ceil(c / b_c) scale bits) / 8; exact."""
        down, across = self.block
        scales = (ceil(rows / down) if down else 1) * (ceil(columns / across) if across else 1)
        return (rows * columns * self.bits + scales * self.scale_bits) / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationGroup:
    """Matrices stored in one format; `targets` names them; without targets, all that no other group names."""

    format: WeightFormat
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint stores its weights: a matrix of `parts` has the format of the first group that names it.

    Matrices that `unquantized` names, and everything outside of `parts` (embeddings, norms, routers, biases, sinks),
    are in 16 bits. `exact_size` is false where engines repack the weights, so that their size in memory is an estimate.
    The names are those of the checkpoint's family: `modules` are pairs of a name here and there, where they differ.
    """

    groups: tuple[QuantizationGroup, ...]
    parts: frozenset[WeightPart] = LAYER_PARTS
    unquantized: tuple[str, ...] = ()
    exact_size: bool = True
    modules: tuple[tuple[str, str], ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether what is computed from it may be kept for later requests: its lists have at most MAX_KEPT_NAMES."""
        return len(self.unquantized) + sum(len(group.targets) for group in self.groups) <= MAX_KEPT_NAMES

    @property
    def dtype(self) -> str:
        """Type of most weights: that of the group without targets, else of the first group."""
        return next((group for group in self.groups if not group.targets), self.groups[0]).format.dtype

    @property
    def block(self) -> tuple[int, int] | None:
        """Rows and columns of the blocks that share a scale; None where a block is a row, or part of one.

        A tensor rank must get whole blocks: vLLM rejects a width that is not a multiple of the block.
        """
        blocks = (group.format.block for group in self.groups)
        return next((block for block in blocks if block[0] > 1 and block[1] > 1), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedWeights:
    """The type that a model's weights are published in, where that is stated, and their quantization (None: none).

    `size` are the bytes of all tensors of the checkpoint, where they are known; its type may then be unknown.
    `excluded_at` is the field with the modules that are not quantized.
    """

    dtype: str | None
    source: DtypeSource
    quantization: Quantization | None = None
    size: int | None = None
    why: str = "the type it is released in"
    excluded_at: str | None = None


FP8_SCALE_BITS = 32


def fp8_blocks(block: int) -> Quantization:
    """Return FP8 weights with a 32-bit scale for each square block, as DeepSeek-V3 stores them (arXiv 2412.19437)."""
    coding = WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(block, block))
    return Quantization(groups=(QuantizationGroup(format=coding),))


FP8_TENSORS = Quantization(groups=(QuantizationGroup(format=WeightFormat(dtype="fp8", bits=8)),))
"""FP8 weights with one scale for each matrix, whose size is negligible."""
MXFP4 = WeightFormat(dtype="mxfp4", bits=4, scale_bits=8, block=(1, 32))
"""Blocks of 32 with an 8-bit scale: OCP Microscaling Formats 1.0."""
NVFP4 = WeightFormat(dtype="nvfp4", bits=4, scale_bits=8, block=(1, 16))
"""Blocks of 16 with an 8-bit scale; the additional scale of the matrix is negligible."""


MXFP4_EXPERTS = Quantization(groups=(QuantizationGroup(format=MXFP4),), parts=EXPERT_PARTS)
"""Routed experts in MXFP4 and everything else in 16 bits, as gpt-oss is released (arXiv 2508.10925)."""
