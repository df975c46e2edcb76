"""The parts of a layer by the fields of a `config.json`: attention of any kind, a state-space layer, an MLP, experts.

Each function returns the matrices, the other parameters and the cache of one layer. Source: the modelling code of
transformers 5.23, with which the tests compare the counts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from types import MappingProxyType
from typing import Any, NoReturn

from app.fit.formulas.architecture import (
    LayerCache,
    LayerMatrix,
    LayerPart,
    attention,
    dense_mlp,
    experts_mlp,
    group_layers,
    latent_matrices,
    matrix,
)
from app.fit.formulas.quantities import MAX_SHOWN, Assumptions, InvalidWorkload, shown

ArchitectureFields = dict[str, Any]
"""Some fields of an Architecture, by name."""

MAX_COUNT = 1_000_000_000
"""Larger than any width or count of a model; rejects absurd input before it is computed with."""
MAX_LAYERS = 10_000
DEFAULT_OF_FAMILY = "the family's default"

MTP_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Fields with the number of layers that are as those of the model: of DeepSeek, GLM and Nemotron, and of Qwen3.5."""
OTHER_DRAFT_LAYERS = ("num_mtp_modules", "num_mtp_layers")


class ConfigReader:
    """Reads fields of a configuration; records the defaults used for those that it leaves out.

    The fields named in `around` are those of the whole file, `path` is where the others are. `defaults` are those of
    the family for fields that its files leave out.
    """

    def __init__(
        self,
        raw: Mapping[str, Any],
        assumptions: Assumptions,
        path: str = "config",
        *,
        around: Collection[str] = (),
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._assumptions, self._path, self._around = assumptions, path, around
        self._defaults = {name: value for name, value in defaults.items() if name not in raw}
        self.raw = {**self._defaults, **raw}

    def within(self, raw: Mapping[str, Any], name: str) -> "ConfigReader":
        """Return a reader of an object under `name`."""
        return ConfigReader(raw, self._assumptions, f"{self._path}.{name}")

    def with_fields(self, raw: Mapping[str, Any]) -> "ConfigReader":
        """Return a reader of other fields in place of these."""
        return ConfigReader(raw, self._assumptions, self._path, around=self._around)

    def with_defaults(self, defaults: Mapping[str, Any]) -> "ConfigReader":
        """Return a reader of these fields with defaults for those left out, which are recorded where they are read."""
        return ConfigReader(self.raw, self._assumptions, self._path, around=self._around, defaults=defaults)

    def path(self, name: str) -> str:
        """Return the path of a field in the file."""
        return f"config.{name}" if name in self._around else f"{self._path}.{name}"

    def refuse(self, name: str, detail: str) -> NoReturn:
        """Raise InvalidWorkload for a field."""
        raise InvalidWorkload(self.path(name), detail)

    def note(self, name: str, value: Any, why: str) -> None:
        """Record what is assumed of a field."""
        self._assumptions.record(self.path(name), value, why)

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self.raw.get(name) is not None

    def first(self, *names: str) -> str:
        """Return the first name that is present and not null, else the first of all."""
        return next((name for name in names if self.has(name)), names[0])

    def count(self, *names: str) -> int:
        """Return the positive integer under the first present name; raise InvalidWorkload where there is none."""
        value = self.optional_count(*names)
        if value is None:
            others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
            self.refuse(names[0], f"is missing{others}")
        return value

    def optional_count(self, *names: str, least: int = 1) -> int | None:
        """Return the integer from `least` under the first name that is present and not null; None where none is."""
        name = next((name for name in names if self.has(name)), None)
        if name is None:
            return None
        value = self.raw[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
            self.refuse(name, f"{shown(value)} is not a whole number from {least} to {MAX_COUNT:,}")
        if name in self._defaults:
            self.note(name, value, DEFAULT_OF_FAMILY)
        return value

    def number(self, *names: str) -> int:
        """Return the whole number under the first name that is present and not null; 0 where there is none."""
        return self.optional_count(*names, least=0) or 0

    def some_layers(self, *names: str) -> int:
        """Return a number of the layers, as `number` does."""
        some = self.number(*names)
        if some > self.layers():
            self.refuse(self.first(*names), f"{some:,} is more than the number of layers, {self.layers():,}")
        return some

    def layers(self) -> int:
        """Return the number of layers: as stated, else as many as the list of their kinds has entries."""
        kinds = self.get_list("layers_block_type")
        if kinds and not self.has("num_hidden_layers"):
            return len(kinds)
        names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
        layers = self.count(*names)
        if layers > MAX_LAYERS:
            self.refuse(self.first(*names), f"{layers} is more than {MAX_LAYERS:,}")
        return layers

    def count_or_default(self, name: str, value: int) -> int:
        """Return a count, or the family's default, which is recorded."""
        given = self.optional_count(name)
        if given is not None:
            return given
        return self._assumptions.record(self.path(name), value, DEFAULT_OF_FAMILY)

    def flag(self, name: str, *, default: bool, why: str = DEFAULT_OF_FAMILY) -> bool:
        """Return a boolean, or the default, which is recorded with what it is: that of the family."""
        value = self.raw.get(name)
        if value is None:
            return self._assumptions.record(self.path(name), default, why)
        if not isinstance(value, bool):
            self.refuse(name, f"{shown(value)} is neither true nor false")
        return value

    def get_list(self, name: str) -> list[Any]:
        """Return a list; empty where the field is missing."""
        value = self.raw.get(name)
        if value is not None and not isinstance(value, list):
            self.refuse(name, f"{shown(value)} is not a list")
        return value or []

    def draft_layers(self) -> int:
        """Return the number of layers that draft further tokens; 0 where there is none."""
        stated = [self.number(name) for name in (*MTP_LAYERS, *OTHER_DRAFT_LAYERS)]
        return next(filter(None, stated), 0)

    def entries(self, name: str, model: "ConfigReader | None" = None, *, drafts: int = 0) -> list[Any]:
        """Return a list with an entry for each layer of the model, which is this object unless given.

        Some files go on with the layers that draft further tokens, at least `drafts` of them; these are left out.
        """
        listed, layers = self.get_list(name), (model or self).layers()
        if not self.has(name):
            self.refuse(name, f"is missing; it has an entry for each of {layers} layers")
        self.check_length(name, len(listed), model, drafts=drafts)
        return listed[:layers]

    def check_length(self, name: str, length: int, model: "ConfigReader | None" = None, *, drafts: int = 0) -> None:
        """Raise InvalidWorkload for a list that has another number of entries than the model has layers."""
        model = model or self
        layers, drafts = model.layers(), model.draft_layers() or drafts
        if length not in {layers, layers + drafts}:
            entries = "1 entry" if length == 1 else f"{length:,} entries"
            others = f" besides {drafts} that draft tokens" if drafts else ""
            self.refuse(name, f"has {entries}, and there are {layers} layers{others}")

    def numbers_of_layers(self, name: str, model: "ConfigReader | None" = None, *, first: int = 0) -> list[int]:
        """Return a list of numbers of layers, of which the first has the number `first`."""
        listed, last = self.get_list(name), (model or self).layers() - 1 + first
        for entry in listed:
            if type(entry) is not int or not first <= entry <= last:
                self.refuse(name, f"{shown(entry)} is not the number of a layer, from {first} to {last}")
        return listed

    def factor(self, name: str, default: float | None = None) -> float:
        """Return a factor of a width: a number above 0, no model has one above 64."""
        value = self.raw.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 64:  # noqa: PLR2004
            self.refuse(name, f"{shown(value)} is not a factor above 0 and up to 64")
        return value

    def require_one_of(self, name: str, *allowed: Any) -> None:
        """Reject any other value of a field that would change the model in a way that is not counted."""
        if self.has(name) and self.raw[name] not in allowed:
            choices = " or ".join(map(shown, allowed))
            self.refuse(name, f"{shown(self.raw[name])} is not understood, only {choices}; give architecture")


Reader = Callable[[ConfigReader], Any]
Source = Reader | int | str | bool | None
"""A constant, or what reads the value."""
Part = Reader | Mapping[str, Source]
"""Some fields of an Architecture: a source for each, or a function that reads them together."""


def value_of(config: ConfigReader, source: Source) -> Any:
    """Return the value of a source in a configuration."""
    return source(config) if callable(source) else source


def read_fields(config: ConfigReader, *parts: Part) -> ArchitectureFields:
    """Return the fields of all parts; those of later parts take precedence."""
    fields: ArchitectureFields = {}
    for part in parts:
        own = part(config) if callable(part) else {name: value_of(config, source) for name, source in part.items()}
        fields |= own
    return fields


def count(*names: str) -> Reader:
    """Return the source of a required count under the first of several names."""
    return lambda config: config.count(*names)


def optional(*names: str) -> Reader:
    """Return the source of a count that may be missing."""
    return lambda config: config.optional_count(*names)


def default(name: str, value: int) -> Reader:
    """Return the source of a count with a default of the family."""
    return lambda config: config.count_or_default(name, value)


def number(*names: str) -> Reader:
    """Return the source of a count that may be zero or missing."""
    return lambda config: config.number(*names)


def flag(name: str, value: bool) -> Reader:
    """Return the source of a boolean with a default of the family, which is recorded."""
    return lambda config: config.flag(name, default=value)


def stated(name: str, otherwise: bool = False) -> Reader:
    """Return the source of a boolean that files of the family have only where it matters."""
    return lambda config: config.flag(name, default=otherwise) if config.has(name) else otherwise


def is_set(name: str, otherwise: bool = False) -> Reader:
    """Return the source of whether a field of any type is true."""
    return lambda config: bool(config.raw.get(name, otherwise))


def has(*names: str) -> Reader:
    """Return the source of whether all of these counts are present; each is checked, also beside one that is not."""
    return lambda config: None not in [config.optional_count(name) for name in names]


def choose(condition: Reader, yes: Source, no: Source = None) -> Reader:
    """Return the source of one of two values."""
    return lambda config: value_of(config, yes if condition(config) else no)


def only(name: str, *allowed: Source) -> Reader:
    """Return a part without fields that rejects any other value of a field."""

    def check(config: ConfigReader) -> ArchitectureFields:
        config.require_one_of(name, *(value_of(config, value) for value in allowed))
        return {}

    return check


SCALED_ROPE_TYPES = {"linear", "dynamic"}
"""RoPE scalings whose factor `max_position_embeddings` does not contain; for llama3, longrope, su and mrope it does."""


def longest_context(config: ConfigReader) -> int | None:
    """Return the longest context that a model supports, tokens; None where the file does not say.

    YaRN: original positions x factor; linear and dynamic: positions x factor, except for Gemma 3, whose file has the
    product; all others: the positions. Source: vLLM, vllm/config/model.py, where it derives the longest context.
    """
    positions = config.optional_count("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    name = next((name for name in ("rope_scaling", "rope_parameters") if config.raw.get(name)), None)
    if name is None:
        return positions
    scaling = section(config, name).raw
    kind, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    factor = 1 if factor is None else factor
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= 1024:  # noqa: PLR2004
        config.refuse(f"{name}.factor", f"{shown(factor)} is not a factor from 1 to 1,024")
    if positions is None:
        return None
    if kind == "yarn":
        original = scaling.get("original_max_position_embeddings")
        return floor((original if type(original) is int and original > 0 else positions) * factor)
    gemma = str(config.raw.get("model_type")).startswith("gemma3")
    return floor(positions * factor) if str(kind) in SCALED_ROPE_TYPES and not gemma else positions


FP32_BYTES, CONV_BYTES = 4, 2
"""Bytes of a value of a recurrent state (`mamba_ssm_dtype`, float32 unless stated), and of a convolution's."""

INDEXER_SCALES = 128
"""Values of an indexer's key that share an FP32 scale in the FP8 cache: vLLM, and SGLang's DSATokenToKVPool."""

SPARSE_MLA_FP8_BYTES = 656
"""Bytes of a latent of 512 + 64 in vLLM's FP8 layout `fp8_ds_mla`: 512 in FP8, 4 FP32 scales, 64 in 16 bits."""

COMPRESSED_FP8_BYTES = 584
"""Bytes of a compressed latent of DeepSeek-V4: 448 in FP8, 64 in 16 bits, 8 of scales; SGLang keeps no other form."""


def hidden_of(config: ConfigReader) -> int:
    """Return the width of the residual stream."""
    return config.count("hidden_size", "n_embd", "d_model")


def latent_attention(
    config: ConfigReader,
    *,
    indexer: bool | None = None,
    output_gate: bool = False,
    rotates: bool = True,
    shares_cache: bool = False,
) -> LayerPart:
    """Count MLA (arXiv 2405.04434, section 2.1); with an `indexer`, sparse (DeepSeek-V3.2, arXiv 2512.02556).

    `indexer` None is dense, False sparse with the selection of an earlier layer. A layer that does not rotate has no
    part with positions; with `shares_cache` the latent is that of an earlier layer.
    """
    hidden, heads, latent = hidden_of(config), config.count("num_attention_heads"), config.count("kv_lora_rank")
    nope, rope, values = (config.count(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    rank = config.optional_count("q_lora_rank")
    nope, rope = (nope, rope) if rotates else (nope + rope, 0)
    matrices = latent_matrices(hidden, heads, latent, nope=nope, rope=rope, values=values, rank=rank)
    if shares_cache:
        matrices = tuple(own for own in matrices if own.name != "self_attn.kv_a_proj_with_mqa")
    if output_gate:
        matrices += (matrix("self_attn.g_proj", heads * values, hidden),)
    fp8 = SPARSE_MLA_FP8_BYTES if indexer is not None and latent + rope == 576 else None  # noqa: PLR2004
    cache = LayerCache(heads=1, values=latent + rope, latent=True, fp8_bytes=fp8)
    norms = (rank or 0) + (0 if shares_cache else latent)
    dense = LayerPart(matrices=matrices, others=norms, caches=() if shares_cache else (cache,))
    return dense.join(_indexer(config, rank or hidden)) if indexer else dense


def _indexer(config: ConfigReader, queries_from: int) -> LayerPart:
    """Count the indexer that selects tokens: one key a token, with a scale in FP8, in the cache."""
    hidden, heads, width = hidden_of(config), config.count("index_n_heads"), config.count("index_head_dim")
    return LayerPart(
        matrices=(
            matrix("self_attn.indexer.wq_b", heads * width, queries_from),
            matrix("self_attn.indexer.wk", width, hidden),
        ),
        others=2 * width + heads * hidden,
        caches=(indexer_cache(width),),
    )


def indexer_cache(width: int, stride: int = 1) -> LayerCache:
    """Return the cache of an indexer's keys: a byte a value and an FP32 scale for each 128."""
    scaled = 1 + FP32_BYTES / INDEXER_SCALES
    return LayerCache(heads=1, values=width, stride=stride, latent=True, value_bytes=scaled)


def delta_net(config: ConfigReader) -> LayerPart:
    """Count a gated delta net, the linear attention of Qwen3-Next and Qwen3.5 (arXiv 2412.06464)."""
    hidden = hidden_of(config)
    key_heads, value_heads = config.count("linear_num_key_heads"), config.count("linear_num_value_heads")
    key, value = config.count("linear_key_head_dim"), config.count("linear_value_head_dim")
    kernel = config.count_or_default("linear_conv_kernel_dim", 4)
    mixed, values = 2 * key_heads * key + value_heads * value, value_heads * value
    return LayerPart(
        matrices=(
            matrix("linear_attn.in_proj_qkv", mixed, hidden),
            matrix("linear_attn.in_proj_z", values, hidden),
            matrix("linear_attn.in_proj_b", value_heads, hidden),
            matrix("linear_attn.in_proj_a", value_heads, hidden),
            matrix("linear_attn.out_proj", hidden, values),
        ),
        others=2 * value_heads + mixed * kernel + value,
        state_bytes=value_heads * key * value * _state_bytes(config) + mixed * (kernel - 1) * CONV_BYTES,
    )


def _state_bytes(config: ConfigReader) -> int:
    """Return the bytes of a value of a recurrent state."""
    names = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
    named = next((config.raw[name] for name in names if config.has(name)), "float32")
    return FP32_BYTES if str(named).endswith("float32") else CONV_BYTES


def kimi_delta_attention(config: ConfigReader) -> LayerPart:
    """Count Kimi Delta Attention, the linear attention of Kimi Linear (arXiv 2510.26692)."""
    linear = section(config, "linear_attn_config")
    hidden, heads, width = hidden_of(config), linear.count("num_heads"), linear.count("head_dim")
    kernel, all_heads = linear.count_or_default("short_conv_kernel_size", 4), heads * width
    gate: tuple[LayerMatrix, ...] = (matrix("self_attn.g_proj", all_heads, hidden),)
    if not linear.raw.get("use_full_rank_gate"):
        gate = (matrix("self_attn.g_a_proj", width, hidden), matrix("self_attn.g_b_proj", all_heads, width))
    return LayerPart(
        matrices=(
            *(matrix(f"self_attn.{name}_proj", all_heads, hidden) for name in "qkv"),
            matrix("self_attn.f_a_proj", width, hidden),
            matrix("self_attn.f_b_proj", all_heads, width),
            matrix("self_attn.b_proj", heads, hidden),
            *gate,
            matrix("self_attn.o_proj", hidden, all_heads),
        ),
        others=all_heads + 3 * all_heads * kernel + heads + width,
        state_bytes=heads * width * width * FP32_BYTES + 3 * all_heads * (kernel - 1) * CONV_BYTES,
    )


def section(config: ConfigReader, name: str) -> ConfigReader:
    """Return the reader of an object within the configuration."""
    raw: Any = config.raw.get(name)
    if not isinstance(raw, Mapping):
        config.refuse(name, "is missing" if raw is None else f"{shown(raw)} is not an object")
    return config.within(raw, name)


def mamba2(config: ConfigReader) -> LayerPart:
    """Count a Mamba-2 layer (arXiv 2405.21060), as Nemotron-H, Granite 4 and Falcon-H1 have it."""
    hidden, heads = hidden_of(config), config.count("mamba_num_heads", "mamba_n_heads")
    state = config.count("ssm_state_size", "mamba_d_state")
    groups, kernel = config.count("n_groups", "mamba_n_groups"), config.count("conv_kernel", "mamba_d_conv")
    if config.raw.get("mamba_d_head") == "auto":
        inner = config.optional_count("mamba_d_ssm") or config.count("mamba_expand") * hidden
    else:
        inner = heads * config.count("mamba_head_dim", "mamba_d_head")
    mixed = inner + 2 * groups * state
    bias = mixed if config.raw.get("use_conv_bias", config.raw.get("mamba_conv_bias", True)) else 0
    norm = inner if config.raw.get("mamba_rms_norm", True) else 0
    return LayerPart(
        matrices=(
            matrix("mixer.in_proj", inner + mixed + heads, hidden),
            matrix("mixer.out_proj", hidden, inner),
        ),
        others=mixed * kernel + bias + 3 * heads + norm,
        state_bytes=inner * state * _state_bytes(config) + mixed * (kernel - 1) * CONV_BYTES,
    )


def compressed_attention(config: ConfigReader, ratio: int) -> LayerPart:
    """Count the attention of DeepSeek-V4: a window, and one latent for each `ratio` tokens (0: the window alone).

    Layers with a ratio of 4 also have an indexer, whose latents overlap.
    """
    hidden, heads, width = hidden_of(config), config.count("num_attention_heads"), config.count("head_dim")
    rank, out, parts = config.count("q_lora_rank"), config.count("o_lora_rank"), config.count("o_groups")
    own = LayerPart(
        matrices=(
            matrix("self_attn.q_a_proj", rank, hidden),
            matrix("self_attn.q_b_proj", heads * width, rank),
            matrix("self_attn.kv_proj", width, hidden),
            matrix("self_attn.o_a_proj", out * parts, ceil(heads * width / parts)),
            matrix("self_attn.o_b_proj", hidden, out * parts),
        ),
        others=heads + rank + width,
        caches=(_compressed_cache(width, window=config.count("sliding_window")),),
    )
    if not ratio:
        return own
    overlap = 2 if ratio == 4 else 1  # noqa: PLR2004  # the ratio of layers with an indexer
    pooled = _compressor("compressor", hidden, width, ratio, overlap)
    pooled = pooled._replace(caches=(_compressed_cache(width, stride=ratio),))
    if overlap == 1:
        return own.join(pooled)
    index, index_heads = config.count("index_head_dim"), config.count("index_n_heads")
    selector = LayerPart(
        matrices=(matrix("self_attn.indexer.q_b_proj", index_heads * index, rank),),
        others=index_heads * hidden,
        caches=(indexer_cache(index, stride=ratio),),
    )
    return own.join(pooled, selector, _compressor("indexer", hidden, index, ratio, overlap))


def _compressed_cache(width: int, *, window: int | None = None, stride: int = 1) -> LayerCache:
    return LayerCache(
        heads=1, values=width, window=window, stride=stride, latent=True, value_bytes=COMPRESSED_FP8_BYTES / 512
    )


def _compressor(name: str, hidden: int, width: int, ratio: int, overlap: int) -> LayerPart:
    return LayerPart(
        matrices=tuple(matrix(f"self_attn.{name}.{part}_proj", overlap * width, hidden) for part in ("kv", "gate")),
        others=ratio * overlap * width + width,
    )


Names = tuple[str, ...]
_EXPERT_WIDTH: Source = count("moe_intermediate_size")
_HEADS, _KV_HEADS = count("num_attention_heads"), count("num_key_value_heads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The names of the fields of a family's experts, and which layers have them; the others have a dense MLP.

    `sparse` says for each layer whether it has experts (None: all have). `shared` is the width of all shared experts
    together, by the width of one. `dense` has the width of a dense MLP, which all layers have where no experts are
    `present`. In a `latent` width, if the family has that, the routed experts work between two more matrices.
    """

    count: Names
    per_token: Names = ("num_experts_per_tok",)
    width: Source = _EXPERT_WIDTH
    shared: Callable[[ConfigReader, int], int] | None = None
    sparse: Callable[[ConfigReader], Sequence[bool]] | None = None
    dense: Names | Callable[[ConfigReader], int] = ("intermediate_size",)
    present: Source = True
    gated: bool = True
    router_bias: Source = False
    shared_gate: bool = False
    latent: Source = None
    prefix: str = "mlp"

    def fields(self, config: ConfigReader) -> ArchitectureFields:
        """Return the fields of an Architecture that describe the experts."""
        sparse = {} if self.sparse is None else {"moe_layers": sum(self.sparse(config))}
        experts, width = config.count(*self.count), value_of(config, self.width)
        selected = config.count(*self.per_token)
        if selected > experts:
            detail = f"{selected:,} is more than {config.first(*self.count)}, {experts:,}"
            config.refuse(config.first(*self.per_token), detail)
        shared = {} if self.shared is None else {"shared_intermediate": self.shared(config, width)}
        per_token = {"experts": experts, "experts_per_token": selected}
        return per_token | {"moe_intermediate": width} | shared | sparse

    def routed(self, config: ConfigReader, fields: ArchitectureFields) -> LayerPart:
        """Count routed and shared experts with their router."""
        return experts_mlp(
            hidden_of(config),
            fields["experts"],
            fields["moe_intermediate"],
            shared=fields.get("shared_intermediate", 0),
            gated=self.gated,
            router_bias=value_of(config, self.router_bias),
            shared_gate=self.shared_gate,
            latent=value_of(config, self.latent),
            prefix=self.prefix,
        )

    def layers(self, config: ConfigReader) -> tuple[list[LayerPart], ArchitectureFields]:
        """Return the MLP or the experts of every layer, and the fields that describe them."""
        fields: ArchitectureFields = {}
        sparse: Sequence[bool] = [False] * config.layers()
        routed = LayerPart()
        if value_of(config, self.present):
            fields = self.fields(config)
            sparse = [True] * config.layers() if self.sparse is None else self.sparse(config)
            routed = self.routed(config, fields)
            fields["moe_layers"] = sum(sparse)
        names = self.dense
        if callable(names):
            width: int | None = names(config)
        else:
            width = config.optional_count(*names) if all(sparse) else config.count(*names)
        dense = routed
        if width is not None and not all(sparse):
            dense = dense_mlp(hidden_of(config), width, gated=self.gated, prefix=self.prefix)
        return [routed if has_experts else dense for has_experts in sparse], fields | {"intermediate": width}


def in_groups(
    config: ConfigReader, layers: Sequence[LayerPart], *, norms: int = 2, tied: bool = False, **fields: Any
) -> ArchitectureFields:
    """Return the fields of a model of these layers, each with `norms` norms over the width."""
    width = LayerPart(others=norms * hidden_of(config))
    groups = group_layers([layer.join(width) for layer in layers])
    windows = {cache.window for group in groups for cache in group.content.caches if cache.window is not None}
    windowed = sum(group.count for group in groups if any(cache.window is not None for cache in group.content.caches))
    return {
        "groups": groups,
        "layers": len(layers),
        "kv_layers": sum(group.count for group in groups if group.content.caches),
        "sliding_window": max(windows, default=None),
        "sliding_layers": windowed or None,
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        **{name: value for name, value in fields.items() if value is not None},
    }


def layered(
    mixers: Callable[[ConfigReader], Sequence[LayerPart]],
    mlps: Experts,
    *,
    tied: Source = False,
    **fields: Source,
) -> Reader:
    """Return the reader of a family with one of several mixers in each layer, and then an MLP or experts."""

    def read(config: ConfigReader) -> ArchitectureFields:
        own = mixers(config)
        following, moe = mlps.layers(config)
        layers = [mixer.join(mlp) for mixer, mlp in zip(own, following, strict=True)]
        return in_groups(config, layers, tied=value_of(config, tied), **moe | read_fields(config, fields))

    return read


def by_kind(kinds: Callable[[ConfigReader], Sequence[str]], mixers: Mapping[str, Reader]) -> Reader:
    """Return what reads the mixer of every layer by its kind."""

    def read(config: ConfigReader) -> list[LayerPart]:
        named = kinds(config)
        own = {kind: mixer(config) for kind, mixer in mixers.items()}
        return [own[kind] for kind in named]

    return read


def kinds_of_layers(config: ConfigReader, name: str, allowed: Sequence[str]) -> list[str] | None:
    """Return a list with the kind of every layer; None where the field is missing."""
    if not config.has(name):
        return None
    kinds = [str(kind) for kind in config.entries(name)]
    check_kinds(config, name, kinds, allowed)
    return kinds


def check_kinds(config: ConfigReader, name: str, kinds: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise InvalidWorkload for a kind of layer that is not one of those allowed."""
    unknown = sorted(set(kinds).difference(allowed))
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        config.refuse(name, f"{', '.join(unknown)[:MAX_SHOWN]} {are} not understood; allowed are {', '.join(allowed)}")


def softmax(*, heads: Source = _HEADS, kv_heads: Source = _KV_HEADS, **shape: Source) -> Reader:
    """Return the reader of softmax attention, with a source for each argument of `attention`."""
    sources = {"heads": heads, "kv_heads": kv_heads, **shape}

    def read(config: ConfigReader) -> LayerPart:
        values = {name: value_of(config, source) for name, source in sources.items()}
        check_heads(config, values["heads"], values["kv_heads"])
        return attention(hidden_of(config), **values)

    return read


_HEADS_NAMES = ("num_attention_heads", "n_head", "n_heads", "swa_num_attention_heads", "num_sliding_attention_heads")
_KV_HEADS_NAMES = (
    *("num_key_value_heads", "swa_num_key_value_heads", "num_global_key_value_heads", "num_attention_groups"),
    *("num_kv_heads", "n_head_kv"),
)


def check_heads(config: ConfigReader, heads: int, kv_heads: int) -> None:
    """Raise InvalidWorkload where the heads cannot share the KV heads evenly, at the field that has their number."""
    if heads % kv_heads:
        name, of = (
            next((name for name in names if config.raw.get(name) == number), names[0])
            for names, number in ((_KV_HEADS_NAMES, kv_heads), (_HEADS_NAMES, heads))
        )
        wrong = "is more than" if kv_heads > heads else "does not divide"
        config.refuse(name, f"{kv_heads:,} {wrong} {of}, {heads:,}")


def shared_experts(*names: str) -> Callable[[ConfigReader, int], int]:
    """Return what reads the width of shared experts by their number."""
    return lambda config, width: config.number(*names) * width


def after(dense: Callable[[ConfigReader], int]) -> Callable[[ConfigReader], list[bool]]:
    """Return which layers have experts: all after some dense ones."""

    def read(config: ConfigReader) -> list[bool]:
        first = dense(config)
        return [number >= first for number in range(config.layers())]

    return read


def some_layers(*names: str) -> Callable[[ConfigReader], int]:
    """Return what reads a number of the layers."""
    return lambda config: config.some_layers(*names)


def listed_sparse(name: str, *sparse: Any) -> Callable[[ConfigReader], list[bool]]:
    """Return which layers have experts: by a list with an entry for each, or all but the first ones."""

    def read(config: ConfigReader) -> list[bool]:
        if not isinstance(config.raw.get(name), list):
            return after(some_layers("first_k_dense_replace"))(config)
        return [entry in sparse for entry in config.entries(name)]

    return read
