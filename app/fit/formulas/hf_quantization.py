"""How a checkpoint stores its weights: by `quantization_config` in a `config.json`, and by the headers of its files.

A field whose meaning is not known is either rejected or recorded among the assumptions, never ignored silently.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, NoReturn

from app.fit.formulas.quantities import MAX_SHOWN, Assumptions, InvalidWorkload, shown
from app.fit.formulas.quantization import (
    ALL_PARTS,
    EXPERT_PARTS,
    FIELD,
    FP8_SCALE_BITS,
    LAYER_PARTS,
    MXFP4,
    NVFP4,
    Quantization,
    QuantizationGroup,
    ReleasedWeights,
    WeightFormat,
    WeightPart,
    compile_patterns,
    modules_of_family,
)

FP8_ROWS = WeightFormat(dtype="fp8", bits=8, scale_bits=32, block=(1, 0))

ALGORITHMS: dict[str, WeightFormat] = {
    "FP8": WeightFormat(dtype="fp8", bits=8),
    "FP8_PER_CHANNEL_PER_TOKEN": FP8_ROWS,
    "FP8_PB_WO": WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(128, 128)),
    "MXFP8": WeightFormat(dtype="fp8", bits=8, scale_bits=8, block=(1, 32)),
    "W8A8_SQ_PER_CHANNEL": WeightFormat(dtype="int8", bits=8, scale_bits=32, block=(1, 0)),
    "W4A16_AWQ": WeightFormat(dtype="awq_int4", bits=4, scale_bits=16, block=(1, 128)),
    "W4A8_AWQ": WeightFormat(dtype="awq_int4", bits=4, scale_bits=16, block=(1, 128)),
    "NVFP4": NVFP4,
    "NVFP4_AWQ": NVFP4,
    "W4A16_NVFP4": NVFP4,
    "W4A8_NVFP4_FP8": NVFP4,
    "W4A8_MXFP4_FP8": MXFP4,
    "MXFP4": MXFP4,
}
"""The algorithms of NVIDIA ModelOpt by name: its `QUANT_ALGO` values."""

TORCH_TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float": "fp32", "half": "fp16"}
"""PyTorch's names for the types of unquantized weights."""

METHOD_ALIASES = {
    "compressed_tensors": "compressed-tensors",
    "modelopt_fp4": "modelopt",
    "modelopt_mixed": "modelopt",
    "awq_marlin": "awq",
    "gptq_marlin": "gptq",
    "gptqmodel": "gptq",
}

FORMATS = (
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp8-quantized",
    "mixed-precision",
)

UNQUANTIZED_FIELDS = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules")
"""The names under which checkpoints list the modules that are not quantized."""

KNOWN_FIELDS = frozenset({
    *UNQUANTIZED_FIELDS, "quant_method", "quant_algo", "quantized_layers", "config_groups", "format", "sparsity_config",
    "fmt", "weight_block_size", "bits", "w_bit", "group_size", "q_group_size", "zero_point", "lm_head", "dynamic",
    "modules_in_block_to_quantize", "load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit",
    "bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "kv_cache_scheme", "kv_cache_quant_algo",
    # These say how a model was quantized or is computed, not how it is stored.
    "activation_scheme", "scale_fmt", "producer", "version", "quantization_status", "global_compression_ratio",
    "moe_quant_algo", "transform_config", "backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config",
    "desc_act", "sym", "damp_percent", "static_groups", "true_sequential", "model_name_or_path", "model_file_base_name",
    "dataset", "tokenizer", "block_name_to_quantize", "module_name_preceding_first_block", "batch_size",
    "pad_token_id", "use_exllama", "max_input_length", "use_cuda_fp16", "model_seqlen", "cache_block_outputs",
    "checkpoint_format", "meta", "is_marlin_format", "pack_dtype", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage",
    "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "llm_int8_threshold", "activation_scale_ub",
})  # fmt: skip
"""Fields that are read, and those that change no size; any other field is recorded among the assumptions."""

MAX_RECORDED_FIELDS = 20

MAX_BLOCK = 65_536


def read_released_weights(
    outer: Mapping[str, Any], text: Mapping[str, Any], assumptions: Assumptions, path: str, *, experts: bool
) -> ReleasedWeights | None:
    """Return the type in which a checkpoint stores its weights; None where the configuration does not say.

    `outer` is the whole configuration, `text` that of the language model at `path`, which may be the same. `experts` is
    whether the model has experts. Raises InvalidWorkload naming a field that is not understood.
    """
    places = ((outer, "config"), (text, path))
    named = [(whole.get(name), f"{place}.{name}") for whole, place in places for name in _SECTIONS]
    if named := [(section, place) for section, place in named if section is not None]:
        raw, place = named[0]
        try:
            return _read_quantization(raw, assumptions, place, text, experts=experts)
        except InvalidWorkload as error:
            field = error.field.replace(FIELD, place, 1).replace("config.expert_dtype", f"{path}.expert_dtype", 1)
            raise InvalidWorkload(field, error.detail) from None
    types = [
        (whole[name], place, name)
        for whole, place in reversed(places)
        for name in _TYPES
        if whole.get(name) not in _UNSTATED
    ]
    if not types:
        return None
    dtype, place, name = types[0]
    torch_type = TORCH_TYPES.get(str(dtype).removeprefix("torch."))
    if torch_type is None:
        _reject(name, dtype, sorted(TORCH_TYPES), of=place)
    others = [other for other, other_place, _ in types[1:] if other_place == place]
    if others and TORCH_TYPES.get(str(others[0]).removeprefix("torch.")) != torch_type:
        why = f"torch_dtype says {str(others[0])[:MAX_SHOWN]}: dtype takes precedence, as in transformers"
        assumptions.record(f"{place}.{name}", str(dtype), why)
    return ReleasedWeights(
        dtype=torch_type, source=name, why=f"{place}.{name}: {dtype}, as config states no quantization"
    )


_TYPES: tuple[Literal["dtype", "torch_dtype"], ...] = ("dtype", "torch_dtype")
"""The type's names, that of newer files first."""
_UNSTATED = (None, "", "auto")
_SECTIONS = ("quantization_config", "compression_config", "quantization")
"""Where a quantization stands; ModelOpt's `hf_quant_config.json`, which may be sent beside the rest, has the last."""


def _read_quantization(
    raw: Any, assumptions: Assumptions, place: str, text: Mapping[str, Any], *, experts: bool
) -> ReleasedWeights:
    """Read the object `raw` at `place`; `text` is the configuration of the language model."""
    if not isinstance(raw, Mapping):
        raise InvalidWorkload(FIELD, f"{shown(raw)} is not an object")
    inner = raw.get("quantization")
    if isinstance(inner, Mapping) and not {"quant_method", "quant_algo"} & raw.keys():
        raw = inner  # the whole of ModelOpt's hf_quant_config.json, which has its producer beside it
    fields = QuantizationFields(raw, has_experts=experts)
    method = _method_name(raw)
    read = READERS.get(method) if method is not None else None
    if read is None:
        _reject("quant_method", raw.get("quant_method"), READERS)
    quantization = replace(read(fields), modules=modules_of_family(str(text.get("model_type"))))
    expert_dtype = text.get("expert_dtype")
    if expert_dtype is not None and all(not group.targets for group in quantization.groups):
        quantization = replace(quantization, groups=(*_expert_groups(expert_dtype), *quantization.groups))
    quantization = replace(quantization, unquantized=(*quantization.unquantized, *fields.names(*UNQUANTIZED_FIELDS)))
    # Compiling the patterns now rejects an unsupported one here, not in the middle of an estimate.
    for listed in (quantization.unquantized, *(group.targets for group in quantization.groups)):
        compile_patterns(listed)
    if raw.get("kv_cache_scheme") or raw.get("kv_cache_quant_algo"):
        why = "in 16 bits unless inference.kv_dtype is given; the checkpoint has scales for fp8"
        assumptions.record(f"{place}.kv_cache_scheme", "fp8", why)
    for name in sorted(str(name) for name in raw if name not in KNOWN_FIELDS)[:MAX_RECORDED_FIELDS]:
        why = "not a field that is known: it is taken to change no size"
        assumptions.record(f"{place}.{name[:80]}", str(raw.get(name))[:80], why)
    excluded = next((name for name in (*UNQUANTIZED_FIELDS, "dynamic") if raw.get(name)), None)
    return ReleasedWeights(
        dtype=quantization.dtype,
        source="quantization_config",
        excluded_at=None if excluded is None else f"{place}.{excluded}",
        quantization=quantization,
        why=f"{place}: {method}, {_describe(quantization)}",
    )


def _expert_groups(dtype: Any) -> Iterator[QuantizationGroup]:
    """Yield the group of the routed experts, where a field names their type: DeepSeek-V4 stores them in MXFP4."""
    if dtype == "fp4":
        yield QuantizationGroup(format=MXFP4, targets=("mlp.experts",))
    elif dtype != "fp8":
        _reject("expert_dtype", dtype, ("fp4", "fp8"), of="config")


def _method_name(raw: Mapping[str, Any]) -> str | None:
    """Return the quantization method, which some files give by their producer or by a flag only."""
    given = raw.get("quant_method")
    if given is not None:
        return METHOD_ALIASES.get(str(given), str(given))
    producer = raw.get("producer")
    is_modelopt = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    if is_modelopt or not {"quant_algo", "quantized_layers"}.isdisjoint(raw):
        return "modelopt"
    if any(raw.get(name) for name in ("load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit")):
        return "bitsandbytes"
    return "compressed-tensors" if "config_groups" in raw else None


def _describe(quantization: Quantization) -> str:
    """Describe in words how most weights are stored."""
    fmt = next(group.format for group in quantization.groups if group.format.dtype == quantization.dtype)
    down, across = fmt.block
    blocks = f" in blocks of {down} x {across}" if down > 1 else f" in groups of {across}"
    where = {(0, 0): "", (1, 0): ", a scale a row"}.get(fmt.block, blocks)
    kinds = dict.fromkeys(group.format.dtype for group in quantization.groups)
    return f"{' and '.join(kinds)}{where}"


def _reject(
    name: str, value: Any, allowed: Iterable[object], *, of: str = FIELD, expected: str | None = None
) -> NoReturn:
    """Raise InvalidWorkload for a field, naming what is allowed and what else the client can do.

    `expected` is what the value must be where text may look like it. A missing field cannot be left out: the whole
    quantization is.
    """
    what, out = f"{shown(value)} is not understood", "it"
    if value is None:
        what, out = "is missing", FIELD
    elif isinstance(value, str) and expected is not None:
        what = f"{shown(value)} is text where {expected} is expected"
    choices = ", ".join(map(str, allowed))
    detail = f"{what}; allowed are {choices}; or leave {out} out and give inference.dtype"
    raise InvalidWorkload(f"{of}.{name}", detail)


A_NUMBER, TRUE_OR_FALSE = "a number", "true or false"


class QuantizationFields:
    """Typed access to the fields of a `quantization_config`, of a model that may have experts; rejects wrong types."""

    def __init__(self, raw: Mapping[str, Any], *, has_experts: bool) -> None:
        self.raw, self.has_experts = raw, has_experts

    def integer(self, *names: str, default: int, allowed: tuple[int, ...] = ()) -> int:
        """Return the integer of the first of several names that is present, else the default."""
        name = next((name for name in names if self.raw.get(name) is not None), None)
        if name is None:
            return default
        value = self.raw[name]
        if isinstance(value, bool) or not isinstance(value, int) or (allowed and value not in allowed):
            _reject(name, value, allowed or ("whole numbers",), expected=A_NUMBER)
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return whether one of several names is true."""
        values = {name: self.raw[name] for name in names if self.raw.get(name) is not None}
        for name, value in values.items():
            if not isinstance(value, bool):
                _reject(name, value, ("true", "false"), expected=TRUE_OR_FALSE)
        return any(values.values()) if values else default

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """Return a string that must be one of those allowed."""
        value = self.raw.get(name)
        if value is None:
            return default
        if value not in allowed:
            _reject(name, value, allowed)
        return str(value)

    def names(self, *names: str) -> tuple[str, ...]:
        """Return the module names listed under several fields together."""
        listed: list[str] = []
        for field in names:
            value = self.raw.get(field) or []
            if isinstance(value, str):
                value = [value]
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                raise InvalidWorkload(f"{FIELD}.{field}", f"{shown(value)} is not a list of names")
            listed += value
        return tuple(listed)

    def group_block(self, *names: str, default: int) -> tuple[int, int]:
        """Return the block of a row's weights that share a scale; a size of -1 is the whole row."""
        size = self.integer(*names, default=default)
        if size != -1 and not 1 <= size <= MAX_BLOCK:
            _reject(names[0], size, ("-1", f"1 to {MAX_BLOCK}"))
        return (1, 0 if size == -1 else size)


def _fp8(fields: QuantizationFields) -> Quantization:
    fields.choice("fmt", ("e4m3", "float8_e4m3fn", "e5m2", "float8_e5m2", "float8_e4m3fnuz"), "e4m3")
    block = fields.raw.get("weight_block_size")
    if block is None:
        rest = WeightFormat(dtype="fp8", bits=8)
    else:
        if not isinstance(block, list) or len(block) != 2 or not all(map(_is_block_size, block)):  # noqa: PLR2004
            _reject("weight_block_size", block, ("null", "[128, 128]"))
        rest = WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(block[0], block[1]))
    named = tuple(_named_layers(fields))
    if not named and fields.raw.get("config_groups"):
        allowed = ("quant_method fp8 with quantized_layers", "quant_method compressed-tensors")
        _reject("config_groups", fields.raw["config_groups"], allowed)
    return Quantization(groups=(*named, QuantizationGroup(format=rest)))


def _compressed(fields: QuantizationFields) -> Quantization:
    fields.choice("format", FORMATS, FORMATS[0])
    sparsity = fields.raw.get("sparsity_config")
    if isinstance(sparsity, Mapping) and sparsity.get("format", "dense") != "dense":
        _reject("sparsity_config.format", sparsity.get("format"), ("dense",))
    groups = fields.raw.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        _reject("config_groups", groups, ("groups with targets and weights",))
    return Quantization(groups=tuple(read_groups(groups)), parts=ALL_PARTS)


def _modelopt(fields: QuantizationFields) -> Quantization:
    name = fields.raw.get("quant_algo")
    groups = fields.raw.get("config_groups")
    if name != "MIXED_PRECISION" and name is not None:
        fmt = format_of_algorithm(name, fields.raw.get("group_size"), "quant_algo")
        return _single_group(fmt, parts=ALL_PARTS)
    named = tuple(_named_layers(fields))
    if not named and isinstance(groups, Mapping) and groups:
        named = tuple(read_groups(groups))
    if not named:
        _reject("quant_algo", name, ("FP8", "NVFP4", "MIXED_PRECISION with quantized_layers or config_groups"))
    return Quantization(groups=named, parts=ALL_PARTS)


def _named_layers(fields: QuantizationFields) -> Iterator[QuantizationGroup]:
    """Yield the layers of `quantized_layers`, which names an algorithm for each, grouped by format."""
    layers = fields.raw.get("quantized_layers")
    if layers is None:
        return
    if not isinstance(layers, Mapping):
        _reject("quantized_layers", layers, ("an object of layers with quant_algo",))
    names_by_format: dict[WeightFormat, list[str]] = {}
    for name, layer in layers.items():
        settings = layer if isinstance(layer, Mapping) else {}
        field = f"quantized_layers.{name}.quant_algo"
        fmt = format_of_algorithm(settings.get("quant_algo"), settings.get("group_size"), field)
        names_by_format.setdefault(fmt, []).append(str(name))
    for fmt, names in names_by_format.items():
        yield QuantizationGroup(format=fmt, targets=tuple(names))


def _awq(fields: QuantizationFields) -> Quantization:
    fields.integer("bits", "w_bit", default=4, allowed=(4,))
    block = fields.group_block("group_size", "q_group_size", default=128)
    zero = 4 if fields.flag("zero_point", default=True) else 0
    fmt = WeightFormat(dtype="awq_int4", bits=4, scale_bits=16 + zero, block=block)
    return _single_group(fmt, exact_size=False)


def _gptq(fields: QuantizationFields) -> Quantization:
    bits = fields.integer("bits", default=4, allowed=(4, 8))
    block = fields.group_block("group_size", default=128)
    dtype = {4: "gptq_int4", 8: "int8"}[bits]
    fmt = WeightFormat(dtype=dtype, bits=bits, scale_bits=16 + bits, block=block)
    parts: frozenset[WeightPart] = ALL_PARTS if fields.flag("lm_head") else LAYER_PARTS
    return Quantization(
        groups=(QuantizationGroup(format=fmt, targets=_gptq_targets(fields)),),
        parts=parts,
        unquantized=tuple(_gptq_unquantized(fields)),
        exact_size=False,
    )


def _gptq_targets(fields: QuantizationFields) -> tuple[str, ...]:
    """Return the modules of a block that GPTQ quantizes, which are listed in lists by the order of quantization."""
    lists = fields.raw.get("modules_in_block_to_quantize") or []
    if not isinstance(lists, list):
        _reject("modules_in_block_to_quantize", lists, ("lists of names",))
    names = [name for entry in lists for name in (entry if isinstance(entry, list) else [entry])]
    if not all(isinstance(name, str) for name in names):
        _reject("modules_in_block_to_quantize", lists, ("lists of names",))
    return tuple(names)


def _gptq_unquantized(fields: QuantizationFields) -> Iterator[str]:
    """Yield GPTQ's `-:` expressions for what is not quantized; reject `+:`, which changes the format of a module."""
    dynamic = fields.raw.get("dynamic") or {}
    if not isinstance(dynamic, Mapping):
        _reject("dynamic", dynamic, ("expressions with '-:'",))
    for text in dynamic:
        if not str(text).startswith("-:"):
            _reject("dynamic", text, ("expressions with '-:'",))
        yield f"re:{str(text)[2:]}"


def _bitsandbytes(fields: QuantizationFields) -> Quantization:
    if fields.flag("load_in_8bit", "_load_in_8bit"):
        fmt = WeightFormat(dtype="int8", bits=8, scale_bits=32, block=(1, 0))
        return _single_group(fmt, exact_size=False)
    if not fields.flag("load_in_4bit", "_load_in_4bit"):
        _reject("load_in_4bit", fields.raw.get("load_in_4bit"), ("true here", "true in load_in_8bit"))
    fields.choice("bnb_4bit_quant_type", ("nf4", "fp4"), "fp4")
    double_quant = fields.flag("bnb_4bit_use_double_quant")
    kind = "nf4_dq" if double_quant else "nf4"
    fmt = WeightFormat(dtype=kind, bits=4, scale_bits=8 + 32 / 256 if double_quant else 32, block=(1, 64))
    return _single_group(fmt, exact_size=False)


def _single_group(fmt: WeightFormat, **more: Any) -> Quantization:
    return Quantization(groups=(QuantizationGroup(format=fmt),), **more)


READERS: dict[str, Callable[[QuantizationFields], Quantization]] = {
    "fp8": _fp8,
    "fbgemm_fp8": lambda _: _single_group(FP8_ROWS),
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "awq": _awq,
    "gptq": _gptq,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": lambda fields: _single_group(MXFP4, parts=EXPERT_PARTS if fields.has_experts else LAYER_PARTS),
}
"""The function that reads a quantization, by its `quant_method`."""


def format_of_algorithm(name: Any, group_size: Any, field: str) -> WeightFormat:
    """Return the format of a ModelOpt algorithm; raises InvalidWorkload for an unknown algorithm or group size."""
    weight_format = ALGORITHMS.get(str(name))
    if weight_format is None:
        _reject(field, name, (*ALGORITHMS, "MIXED_PRECISION"))
    if group_size is None or weight_format.block[0] != 1 or not weight_format.block[1]:
        return weight_format
    return replace(weight_format, block=(1, _block_size(group_size, "group_size")))


def read_groups(groups: Mapping[str, Any]) -> Iterator[QuantizationGroup]:
    """Yield the groups of a `config_groups`; the group of all linear layers comes last, as the first match counts."""
    read = [_read_group(name, raw) for name, raw in groups.items()]
    yield from (group for group in read if group.targets)
    yield from (group for group in read if not group.targets)


def _read_group(name: str, raw: Any) -> QuantizationGroup:
    field = f"config_groups.{name}"
    weights = raw.get("weights") if isinstance(raw, Mapping) else None
    if not isinstance(weights, Mapping):
        _reject(f"{field}.weights", weights, ("an object; name unquantized weights in ignore",))
    targets = raw.get("targets") or []
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        _reject(f"{field}.targets", targets, ("a list of names",))
    all_linear = "Linear" in targets
    fmt = _read_format(weights, f"{field}.weights")
    return QuantizationGroup(format=fmt, targets=() if all_linear else tuple(targets))


def _read_format(weights: Mapping[str, Any], field: str) -> WeightFormat:
    bits, kind = weights.get("num_bits"), weights.get("type")
    block = _read_block(weights, field)
    if (bits, kind) == (8, "float"):
        return WeightFormat(dtype="fp8", bits=8, scale_bits=_scale_bits(weights, block), block=block)
    if kind == "int" and type(bits) is int and bits in (4, 8):
        zero = 0 if weights.get("symmetric", True) else bits
        return WeightFormat(dtype=f"int{bits}", bits=bits, scale_bits=16 + zero, block=block)
    if (bits, kind) == (4, "float"):
        if block[0] != 1 or block[1] not in (16, 32):
            _reject(f"{field}.group_size", weights.get("group_size"), ("16 (NVFP4) and 32 (MXFP4)",))
        return NVFP4 if block[1] == 16 else MXFP4  # noqa: PLR2004  # the group size distinguishes NVFP4 from MXFP4
    allowed = ("8 and 4 of type float", "8 and 4 of type int")
    if kind in ("float", "int"):
        _reject(f"{field}.num_bits", bits, allowed, expected=A_NUMBER)
    _reject(f"{field}.type", kind, allowed)


def _scale_bits(weights: Mapping[str, Any], block: tuple[int, int]) -> int:
    """Return the bits of a scale: 8 for a group of MXFP8, 32 for a square block, 16 for a row or the matrix."""
    if block[0] == 1 and block[1]:
        return 8 if "uint8" in str(weights.get("scale_dtype")) or block[1] == 32 else 16  # noqa: PLR2004  # OCP MX
    return FP8_SCALE_BITS if block[0] > 1 else 16


def _read_block(weights: Mapping[str, Any], field: str) -> tuple[int, int]:
    """Return the rows and columns that share a scale, by the strategy or else by the fields that imply one."""
    structure, size = weights.get("block_structure"), weights.get("group_size")
    strategy = weights.get("strategy") or ("block" if structure else "group" if size else "tensor")
    if strategy in {"tensor", "channel"}:
        return (0, 0) if strategy == "tensor" else (1, 0)
    if strategy in {"group", "tensor_group"}:
        return (1, 0) if size == -1 else (1, _block_size(size, f"{field}.group_size"))
    if strategy == "block":
        if isinstance(structure, str):
            structure = [int(part) if part.isdigit() else part for part in structure.split("x")]
        if not isinstance(structure, list) or len(structure) != 2:  # noqa: PLR2004  # rows and columns
            _reject(f"{field}.block_structure", structure, ("[128, 128]",))
        rows, columns = (_block_size(size, f"{field}.block_structure") for size in structure)
        return rows, columns
    _reject(f"{field}.strategy", strategy, ("tensor, channel, group, tensor_group and block",))


def _block_size(value: Any, field: str) -> int:
    if not _is_block_size(value):
        _reject(field, value, (f"1 to {MAX_BLOCK}",), expected=A_NUMBER)
    return int(value)


def _is_block_size(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_BLOCK


SAFETENSORS = "safetensors"
BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16,
    "U16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8, "I8": 8, "U8": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""Bits of a value of each type of tensor."""

DTYPES = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8", "F8_E5M2": "fp8", "I8": "int8", "F4": "nvfp4"}
"""The type of weights, by that of the tensors that have most of the bytes; packed integers may be of any type."""

NO_WEIGHTS = ("_scale", "_scale_inv", "_scale_2", "_zero_point", ".scales", ".qzeros", ".g_idx", "_scales", "inv_freq")
"""Ends of the names of tensors that hold scales, zero points and tables: bytes, but no parameters."""

MAX_SIZE = 10**16
"""Larger than any checkpoint, bytes; rejects absurd input before it is computed with."""

MAX_BYTES_PER_PARAM, MAX_PARAMS_PER_BYTE = 8, 8
"""From 64 bits to one bit a parameter; another number of parameters is not that of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The tensors of a checkpoint: all bytes, parameters (None where packed or not stated), and the type."""

    size: int
    params: int | None = None
    dtype: str | None = None
    source: str = "metadata.total_size of its index"


def read_checkpoint(raw: Mapping[str, Any]) -> Checkpoint:
    """Read an index, or the tensors of a header; raises InvalidWorkload naming what is not understood."""
    if "weight_map" in raw or "metadata" in raw:
        return _read_index(raw)
    sizes: dict[str, int] = {}
    params: int | None = 0
    for name, dtype, count in _tensors(raw):
        sizes[dtype] = sizes.get(dtype, 0) + count * BITS[dtype] // 8
        if name.endswith(NO_WEIGHTS):
            continue
        packed = dtype in {"I32", "U8", "I64", "U32"}
        params = None if packed or params is None else params + count
    if not sizes:
        raise InvalidWorkload(SAFETENSORS, "has no tensors")
    most = max(sizes, key=lambda dtype: sizes[dtype])
    size = _checked(sum(sizes.values()), SAFETENSORS)
    return Checkpoint(size=size, params=params, dtype=DTYPES.get(most), source="the shapes and types of its tensors")


def _read_index(raw: Mapping[str, Any]) -> Checkpoint:
    metadata = raw.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    # Some writers have a float, which is whole.
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if isinstance(total, bool) or not isinstance(total, int):
        what = "is missing" if total is None else f"{shown(total)} is not a number of bytes"
        detail = f"{what}; or give the headers"
        raise InvalidWorkload(f"{SAFETENSORS}.metadata.total_size", detail)
    size = _checked(total, f"{SAFETENSORS}.metadata.total_size")
    params = metadata.get("total_parameters") if isinstance(metadata, Mapping) else None
    # Some writers count one rank of a sharded model only: fewer than a parameter for 8 bytes.
    return Checkpoint(size=size, params=params if type(params) is int and may_have(size, params) else None)


def may_have(size: int, params: int) -> bool:
    """Whether a checkpoint of `size` bytes may have that many parameters."""
    return size <= params * MAX_BYTES_PER_PARAM and params <= size * MAX_PARAMS_PER_BYTE


def _checked(size: int, field: str) -> int:
    if not 0 < size <= MAX_SIZE:
        raise InvalidWorkload(field, f"{size} is not a number of bytes from 1 to {MAX_SIZE:,}")
    return size


def _tensors(header: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield name, type and number of values of each tensor of a header."""
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = (tensor.get(key) for key in ("dtype", "shape")) if isinstance(tensor, Mapping) else (None, None)
        if not isinstance(dtype, str) or dtype not in BITS:
            types = ", ".join(BITS)
            raise InvalidWorkload(f"{SAFETENSORS}.{name[:80]}.dtype", f"{shown(dtype)} is not one of {types}")
        if not isinstance(shape, list) or not all(type(length) is int and 0 <= length < MAX_SIZE for length in shape):
            raise InvalidWorkload(f"{SAFETENSORS}.{name[:80]}.shape", f"{shown(shape)} is not a list of lengths")
        yield name, dtype, prod(shape)
