"""The `quantization_config` of a `config.json`: how a checkpoint stores its weights; nothing of it is passed over."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.quantization import (
    ALL_PARTS,
    EXPERT_PARTS,
    FP8_SCALE_BITS,
    LAYER_PARTS,
    MXFP4,
    NVFP4,
    Quantization,
    QuantizationGroup,
    ReleasedWeights,
    WeightFormat,
    WeightPart,
)
from app.fit.formulas.weight_matrices import FIELD, compile_patterns

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

MAX_BLOCK = 65_536


def format_of_algorithm(name: str, group_size: Any, place: str) -> WeightFormat:
    """Give the coding of an algorithm; raises InvalidWorkload for one that is not known, or another size of groups."""
    known = ALGORITHMS.get(name)
    if known is None:
        allowed = ", ".join([*ALGORITHMS, "MIXED_PRECISION"])
        raise InvalidWorkload(
            place, f"{name!r} is not understood; allowed are {allowed}; or leave it out and give inference.dtype"
        )
    if group_size is None or known.block[0] != 1 or not known.block[1]:
        return known
    return WeightFormat(
        dtype=known.dtype,
        bits=known.bits,
        scale_bits=known.scale_bits,
        block=(1, _block_size(group_size, "group_size")),
    )


def read_groups(groups: Mapping[str, Any]) -> Iterator[QuantizationGroup]:
    """Read groups of matrices that are stored alike; those for all linear layers come last."""
    read = [_read_group(name, raw) for name, raw in groups.items()]
    yield from (group for group in read if group.targets)
    yield from (group for group in read if not group.targets)


def _read_group(name: str, raw: Any) -> QuantizationGroup:
    place = f"config_groups.{name}"
    weights = raw.get("weights") if isinstance(raw, Mapping) else None
    if not isinstance(weights, Mapping):
        raise _wrong(f"{place}.weights", weights, "an object: weights that are not quantized are told by ignore")
    targets = raw.get("targets") or []
    if not isinstance(targets, list) or not all(isinstance(one, str) for one in targets):
        raise _wrong(f"{place}.targets", targets, "a list of names")
    everything = "Linear" in targets
    return QuantizationGroup(
        format=_read_format(weights, f"{place}.weights"), targets=() if everything else tuple(targets)
    )


def _read_format(weights: Mapping[str, Any], place: str) -> WeightFormat:
    bits, kind = weights.get("num_bits"), weights.get("type")
    block = _read_block(weights, place)
    if (bits, kind) == (8, "float"):
        return WeightFormat(dtype="fp8", bits=8, scale_bits=_scale_bits(weights, block), block=block)
    if kind == "int" and bits in (4, 8):
        zero = 0 if weights.get("symmetric", True) else bits
        return WeightFormat(dtype=f"int{bits}", bits=bits, scale_bits=16 + zero, block=block)
    if (bits, kind) == (4, "float"):
        if block[0] != 1 or block[1] not in (16, 32):
            raise _wrong(f"{place}.group_size", weights.get("group_size"), "16 (NVFP4) and 32 (MXFP4)")
        return NVFP4 if block[1] == 16 else MXFP4  # noqa: PLR2004  # what tells the two formats apart
    raise _wrong(f"{place}.num_bits", f"{bits} of type {kind}", "8 and 4 of type float, 8 and 4 of type int")


def _scale_bits(weights: Mapping[str, Any], block: tuple[int, int]) -> int:
    """MXFP8 has a byte for a group; a scale of rows or of the matrix is in 16 bits, of square blocks in 32."""
    if block[0] == 1 and block[1]:
        return 8 if "uint8" in str(weights.get("scale_dtype")) or block[1] == 32 else 16  # noqa: PLR2004  # OCP MX
    return FP8_SCALE_BITS if block[0] > 1 else 16


def _read_block(weights: Mapping[str, Any], place: str) -> tuple[int, int]:
    """Rows and columns that share a scale, by the strategy; where none is named, by what else there is."""
    structure, size = weights.get("block_structure"), weights.get("group_size")
    strategy = weights.get("strategy") or ("block" if structure else "group" if size else "tensor")
    if strategy in {"tensor", "channel"}:
        return (0, 0) if strategy == "tensor" else (1, 0)
    if strategy in {"group", "tensor_group"}:
        return (1, 0) if size == -1 else (1, _block_size(size, f"{place}.group_size"))
    if strategy == "block":
        if isinstance(structure, str):
            structure = [int(part) if part.isdigit() else part for part in structure.split("x")]
        if not isinstance(structure, list) or len(structure) != 2:  # noqa: PLR2004  # rows and columns
            raise _wrong(f"{place}.block_structure", structure, "[128, 128]")
        return _block_size(structure[0], f"{place}.block_structure"), _block_size(
            structure[1], f"{place}.block_structure"
        )
    raise _wrong(f"{place}.strategy", strategy, "tensor, channel, group, tensor_group and block")


def _block_size(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_BLOCK:
        raise _wrong(place, value, f"1 to {MAX_BLOCK}")
    return value


def _wrong(place: str, value: Any, allowed: str) -> InvalidWorkload:
    said = f"{str(value)[:80]!r} is not understood; allowed are {allowed}; or leave it out and give inference.dtype"
    return InvalidWorkload(f"{FIELD}.{place}", said)


TORCH_TYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float": "fp32", "half": "fp16"}
"""Names of PyTorch for the types of weights that are not quantized."""

UNQUANTIZED_FIELDS = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules")
"""What checkpoints call the list of what is not quantized."""


MAX_RECORDED_FIELDS = 20
KNOWN_FIELDS = frozenset({
    *UNQUANTIZED_FIELDS, "quant_method", "quant_algo", "quantized_layers", "config_groups", "format", "sparsity_config",
    "fmt", "weight_block_size", "bits", "w_bit", "group_size", "q_group_size", "zero_point", "lm_head", "dynamic",
    "modules_in_block_to_quantize", "load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit",
    "bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "kv_cache_scheme", "kv_cache_quant_algo",
    # How a model was quantized, or is computed: nothing of how it is stored.
    "activation_scheme", "scale_fmt", "producer", "version", "quantization_status", "global_compression_ratio",
    "moe_quant_algo", "transform_config", "backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config",
    "desc_act", "sym", "damp_percent", "static_groups", "true_sequential", "model_name_or_path", "model_file_base_name",
    "dataset", "tokenizer", "block_name_to_quantize", "module_name_preceding_first_block", "batch_size",
    "pad_token_id", "use_exllama", "max_input_length", "use_cuda_fp16", "model_seqlen", "cache_block_outputs",
    "checkpoint_format", "meta", "is_marlin_format", "pack_dtype", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage",
    "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight", "llm_int8_threshold", "activation_scale_ub",
})  # fmt: skip
"""Fields that are read, and those that change no size; any other is noted among the assumptions."""


def read_released_weights(
    outer: Mapping[str, Any], text: Mapping[str, Any], assumptions: Assumptions, *, experts: bool
) -> ReleasedWeights | None:
    """Read in which type a checkpoint stores its weights; None where it does not say.

    `outer` is the whole configuration, `text` that of the language model, which may be the same. Raises InvalidWorkload
    naming a field that is not understood.
    """
    named = [(whole, name) for whole in (outer, text) for name in ("quantization_config", "compression_config")]
    raw = next((whole[name] for whole, name in named if whole.get(name) is not None), None)
    if raw is not None:
        return _read_quantization(raw, assumptions, experts=experts)
    dtype = next(
        (value for whole in (text, outer) for name in ("torch_dtype", "dtype") if (value := whole.get(name))), None
    )
    if dtype is None or dtype == "auto":
        return None
    known = TORCH_TYPES.get(str(dtype).removeprefix("torch."))
    if known is None:
        _refuse("torch_dtype", dtype, sorted(TORCH_TYPES), of="config")
    return ReleasedWeights(dtype=known, source="torch_dtype", why=f"config.torch_dtype: {dtype}")


def _refuse(name: str, value: Any, allowed: Any, *, of: str = FIELD) -> NoReturn:
    """Refuse a field, naming what is allowed and what else can be done."""
    words = ", ".join(str(word) for word in allowed)
    shown = str(value) if len(str(value)) <= 80 else f"{str(value)[:80]}..."  # noqa: PLR2004  # a line of text
    raise InvalidWorkload(
        f"{of}.{name}", f"{shown!r} is not understood; allowed are {words}; or leave it out and give inference.dtype"
    )


def _read_quantization(raw: Any, assumptions: Assumptions, *, experts: bool) -> ReleasedWeights:
    if not isinstance(raw, Mapping):
        raise InvalidWorkload(FIELD, "is no object")
    fields = QuantizationFields(raw)
    method = _method_name(raw)
    read = READERS.get(method)
    if read is None:
        _refuse("quant_method", method or "missing", READERS)
    quantization = read(fields, experts)
    quantization = replace(quantization, unquantized=(*quantization.unquantized, *fields.names(*UNQUANTIZED_FIELDS)))
    for listed in (quantization.unquantized, *(group.targets for group in quantization.groups)):
        compile_patterns(listed)
    _record_kv_scales(raw, assumptions)
    for name in sorted(str(name) for name in raw if name not in KNOWN_FIELDS)[:MAX_RECORDED_FIELDS]:
        why = "not a field that is known: it is taken to change no size"
        assumptions.record(f"{FIELD}.{name[:80]}", str(raw.get(name))[:80], why)
    return ReleasedWeights(
        dtype=quantization.dtype,
        source="quantization_config",
        quantization=quantization,
        why=f"{FIELD}: {method}, {_describe(quantization)}",
    )


def _method_name(raw: Mapping[str, Any]) -> str:
    """Name the method: some files tell it by what made them, or by a flag."""
    given = raw.get("quant_method")
    if given is not None:
        return METHOD_ALIASES.get(str(given), str(given))
    producer = raw.get("producer")
    if "quant_algo" in raw or (isinstance(producer, Mapping) and producer.get("name") == "modelopt"):
        return "modelopt"
    if any(raw.get(name) for name in ("load_in_4bit", "_load_in_4bit", "load_in_8bit", "_load_in_8bit")):
        return "bitsandbytes"
    return "compressed-tensors" if "config_groups" in raw else ""


METHOD_ALIASES = {
    "compressed_tensors": "compressed-tensors",
    "modelopt_fp4": "modelopt",
    "modelopt_mixed": "modelopt",
    "awq_marlin": "awq",
    "gptq_marlin": "gptq",
    "gptqmodel": "gptq",
}


def _describe(quantization: Quantization) -> str:
    """Say in words how most weights are stored."""
    coding = next(group.format for group in quantization.groups if group.format.dtype == quantization.dtype)
    down, across = coding.block
    where = {(0, 0): "", (1, 0): ", a scale a row"}.get(coding.block)
    where = (
        where if where is not None else f" in blocks of {down} x {across}" if down > 1 else f" in groups of {across}"
    )
    kinds = dict.fromkeys(group.format.dtype for group in quantization.groups)
    return f"{' and '.join(kinds)}{where}"


def _record_kv_scales(raw: Mapping[str, Any], assumptions: Assumptions) -> None:
    """Say that a checkpoint brings scales for a narrower KV cache, which is counted only if it is asked for."""
    if raw.get("kv_cache_scheme") or raw.get("kv_cache_quant_algo"):
        why = "in 16 bits unless inference.kv_dtype is given; the checkpoint has scales for fp8"
        assumptions.record("config.quantization_config.kv_cache_scheme", "fp8", why)


class QuantizationFields:
    """The fields of a quantization, taken with care."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def integer(self, *names: str, default: int, allowed: tuple[int, ...] = ()) -> int:
        """The whole number of the first of several names that is there."""
        name = next((name for name in names if self.raw.get(name) is not None), None)
        if name is None:
            return default
        value = self.raw[name]
        if isinstance(value, bool) or not isinstance(value, int) or (allowed and value not in allowed):
            _refuse(name, value, allowed or ("whole numbers",))
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """Whether one of several names is true."""
        values = {name: self.raw[name] for name in names if self.raw.get(name) is not None}
        for name, value in values.items():
            if not isinstance(value, bool):
                _refuse(name, value, ("true", "false"))
        return any(values.values()) if values else default

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        """One of several words."""
        value = self.raw.get(name)
        if value is None:
            return default
        if value not in allowed:
            _refuse(name, value, allowed)
        return str(value)

    def names(self, *names: str) -> tuple[str, ...]:
        """The names of modules in lists of several names."""
        found: list[str] = []
        for name in names:
            value = self.raw.get(name) or []
            if isinstance(value, str):
                value = [value]
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise InvalidWorkload(f"{FIELD}.{name}", "is no list of names")
            found += value
        return tuple(found)

    def group_block(self, *names: str, default: int) -> tuple[int, int]:
        """The block of weights of a row that share a scale; -1 is the whole row."""
        size = self.integer(*names, default=default)
        if size != -1 and not 1 <= size <= 65536:  # noqa: PLR2004  # no row is that long
            _refuse(names[0], size, ("-1", "1 to 65536"))
        return (1, 0 if size == -1 else size)


def _single_group(method: str, coding: WeightFormat, **more: Any) -> Quantization:
    return Quantization(method=method, groups=(QuantizationGroup(format=coding),), **more)


def _fp8(fields: QuantizationFields, _experts: bool) -> Quantization:
    fields.choice("fmt", ("e4m3", "float8_e4m3fn", "e5m2", "float8_e5m2", "float8_e4m3fnuz"), "e4m3")
    block = fields.raw.get("weight_block_size")
    if block is None:
        rest = WeightFormat(dtype="fp8", bits=8)
    elif isinstance(block, list) and len(block) == 2 and all(type(one) is int and 0 < one <= 65536 for one in block):  # noqa: PLR2004
        rest = WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(block[0], block[1]))
    else:
        _refuse("weight_block_size", block, ("null", "[128, 128]"))
    named = tuple(_named_layers(fields))
    if not named and fields.raw.get("config_groups"):
        _refuse("config_groups", "config_groups", ("quant_method fp8 with quantized_layers", "compressed-tensors"))
    return Quantization(method="fp8", groups=(*named, QuantizationGroup(format=rest)))


def _fbgemm(_fields: QuantizationFields, _experts: bool) -> Quantization:
    return _single_group("fbgemm_fp8", WeightFormat(dtype="fp8", bits=8, scale_bits=32, block=(1, 0)))


def _compressed(fields: QuantizationFields, _experts: bool) -> Quantization:
    fields.choice("format", FORMATS, FORMATS[0])
    sparsity = fields.raw.get("sparsity_config")
    if isinstance(sparsity, Mapping) and sparsity.get("format", "dense") != "dense":
        _refuse("sparsity_config.format", sparsity.get("format"), ("dense",))
    groups = fields.raw.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        _refuse("config_groups", groups, ("groups with targets and weights",))
    return Quantization(method="compressed-tensors", groups=tuple(read_groups(groups)), parts=ALL_PARTS)


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


def _modelopt(fields: QuantizationFields, _experts: bool) -> Quantization:
    name = fields.raw.get("quant_algo")
    groups = fields.raw.get("config_groups")
    if name != "MIXED_PRECISION" and name is not None:
        coding = format_of_algorithm(str(name), fields.raw.get("group_size"), f"{FIELD}.quant_algo")
        return _single_group("modelopt", coding, parts=ALL_PARTS)
    named = tuple(_named_layers(fields))
    if not named and isinstance(groups, Mapping) and groups:
        named = tuple(read_groups(groups))
    if not named:
        _refuse("quant_algo", name, ("FP8", "NVFP4", "MIXED_PRECISION with quantized_layers or config_groups"))
    return Quantization(method="modelopt", groups=named, parts=ALL_PARTS)


def _named_layers(fields: QuantizationFields) -> Iterator[QuantizationGroup]:
    """Layers with an algorithm each; those of the same are one group."""
    layers = fields.raw.get("quantized_layers")
    if layers is None:
        return
    if not isinstance(layers, Mapping):
        _refuse("quantized_layers", layers, ("an object of layers with quant_algo",))
    alike: dict[WeightFormat, list[str]] = {}
    for name, how in layers.items():
        told = how if isinstance(how, Mapping) else {}
        place = f"{FIELD}.quantized_layers.{name}.quant_algo"
        alike.setdefault(format_of_algorithm(str(told.get("quant_algo")), told.get("group_size"), place), []).append(
            str(name)
        )
    for coding, names in alike.items():
        yield QuantizationGroup(format=coding, targets=tuple(names))


def _awq(fields: QuantizationFields, _experts: bool) -> Quantization:
    fields.integer("bits", "w_bit", default=4, allowed=(4,))
    block = fields.group_block("group_size", "q_group_size", default=128)
    zero = 4 if fields.flag("zero_point", default=True) else 0
    return _single_group(
        "awq", WeightFormat(dtype="awq_int4", bits=4, scale_bits=16 + zero, block=block), exact_size=False
    )


def _gptq(fields: QuantizationFields, _experts: bool) -> Quantization:
    bits = fields.integer("bits", default=4, allowed=(4, 8))
    block = fields.group_block("group_size", default=128)
    dtype = {4: "gptq_int4", 8: "int8"}[bits]
    coding = WeightFormat(dtype=dtype, bits=bits, scale_bits=16 + bits, block=block)
    parts: frozenset[WeightPart] = ALL_PARTS if fields.flag("lm_head") else LAYER_PARTS
    targets = _gptq_targets(fields)
    groups = (QuantizationGroup(format=coding, targets=targets),)
    return Quantization(
        method="gptq", groups=groups, parts=parts, unquantized=tuple(_gptq_unquantized(fields)), exact_size=False
    )


def _gptq_targets(fields: QuantizationFields) -> tuple[str, ...]:
    """The modules of a block that GPTQ quantizes, which are listed in the order of their turn."""
    turns = fields.raw.get("modules_in_block_to_quantize") or []
    if not isinstance(turns, list):
        _refuse("modules_in_block_to_quantize", turns, ("lists of names",))
    names = [name for turn in turns for name in (turn if isinstance(turn, list) else [turn])]
    if not all(isinstance(name, str) for name in names):
        _refuse("modules_in_block_to_quantize", turns, ("lists of names",))
    return tuple(names)


def _gptq_unquantized(fields: QuantizationFields) -> Iterator[str]:
    """Expressions with `-:` name what is not quantized; `+:` changes how, which is not understood."""
    dynamic = fields.raw.get("dynamic") or {}
    if not isinstance(dynamic, Mapping):
        _refuse("dynamic", dynamic, ("expressions with '-:'",))
    for text in dynamic:
        if not str(text).startswith("-:"):
            _refuse("dynamic", text, ("expressions with '-:'",))
        yield f"re:{str(text)[2:]}"


def _bitsandbytes(fields: QuantizationFields, _experts: bool) -> Quantization:
    if fields.flag("load_in_8bit", "_load_in_8bit"):
        coding = WeightFormat(dtype="int8", bits=8, scale_bits=32, block=(1, 0))
        return _single_group("bitsandbytes", coding, exact_size=False)
    if not fields.flag("load_in_4bit", "_load_in_4bit"):
        _refuse("load_in_4bit", "no load_in_4bit and no load_in_8bit", ("one of them true",))
    fields.choice("bnb_4bit_quant_type", ("nf4", "fp4"), "fp4")
    twice = fields.flag("bnb_4bit_use_double_quant")
    kind = "nf4_dq" if twice else "nf4"
    coding = WeightFormat(dtype=kind, bits=4, scale_bits=8 + 32 / 256 if twice else 32, block=(1, 64))
    return _single_group("bitsandbytes", coding, exact_size=False)


def _mxfp4(_fields: QuantizationFields, experts: bool) -> Quantization:
    return _single_group("mxfp4", MXFP4, parts=EXPERT_PARTS if experts else LAYER_PARTS)


READERS: dict[str, Callable[[QuantizationFields, bool], Quantization]] = {
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "awq": _awq,
    "gptq": _gptq,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
}
"""What reads a quantization, by its `quant_method`."""
