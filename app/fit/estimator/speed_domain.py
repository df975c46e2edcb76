"""What the measured runs of serving cover. Outside of it the range of a speed is wider, and says so."""

from app.fit.accuracy import evidence_of
from app.fit.estimator.serving import ServingSetup
from app.fit.formulas.layers import is_sparse
from app.fit.formulas.quantities import Evidence
from app.fit.formulas.serving_constants import STEP, Spread

MIN_BANDWIDTH_GB_PER_S = 3000.0
"""The slowest measured GPU is an H100 (3,350 GB/s): older and graphics GPUs are outside."""
MAX_TENSOR_PARALLEL = 8
"""The most GPUs of a layer that were measured."""
MAX_SEQUENCES = 128
"""Nine tenths of the measured runs have no more sequences of a replica; the most are 512.

Of published maximum rates with 129 to 512, which nothing is fitted to, only half were in a range that was not wider.
"""
MAX_CONTEXT_TOKENS = 16_384
"""The longest requests that were measured are of 8,192 tokens in and 1,024 out."""
MEASURED_DTYPES = frozenset({"bf16", "fp16", "fp8", "nvfp4", "mxfp4", "int4"})
"""Types of weights of the measured runs."""

WIDER = 1.2
"""How much further each end of the range is for each departure. An assumption, as nothing outside was fitted."""
MAX_DEPARTURES = 4
"""More departures make a range no wider."""


def find_departures(setup: ServingSetup, kept_tokens: float | None, *, typical: bool) -> tuple[str, ...]:
    """Return in what a workload departs from the measured runs: gpu, link, context, ... (the keys of DEPARTURES)."""
    gpus, parallelism, shape = setup.gpus, setup.deployment.parallelism, setup.model.shape
    dtype = setup.weights.type.dtype if setup.weights is not None else None
    departs = {
        "gpu": (gpus.bandwidth_gb_per_s or 0.0) < MIN_BANDWIDTH_GB_PER_S,
        "peak": gpus.peak_tflops is None,
        "link": parallelism.stage_gpus > 1 and gpus.link == "pcie",
        "tensor_parallel": parallelism.stage_gpus > MAX_TENSOR_PARALLEL,
        "data_parallel_attention": parallelism.data > 1,
        "pipeline_parallel": parallelism.pipeline > 1,
        "disaggregated": setup.workload.prefill_busy is not None,
        "speculative": setup.workload.speculative is not None,
        "sequences": setup.sequences > MAX_SEQUENCES * parallelism.data,
        "context": kept_tokens is None or kept_tokens > MAX_CONTEXT_TOKENS,
        "dtype": dtype not in MEASURED_DTYPES,
        "model": typical
        or shape.unknown_type
        or (shape.kv_layers is not None and shape.kv_layers != shape.layers)
        or any(is_sparse(group.content) for group in shape.groups),
    }
    return tuple(name for name, outside in departs.items() if outside)


DEPARTURES = {
    "gpu": "a GPU with less memory bandwidth than an H100",
    "peak": "a GPU whose peak is unknown: computing and prompts are not counted",
    "link": "tensor parallelism over PCIe",
    "tensor_parallel": "a layer on more than 8 GPUs",
    "data_parallel_attention": "groups of GPUs with sequences of their own",
    "pipeline_parallel": "pipeline stages",
    "disaggregated": "prompts that are read by replicas of their own",
    "speculative": "speculative decoding: the stated acceptance",
    "sequences": "more than 128 sequences of a copy, which few runs have",
    "context": "more than 16,384 tokens of a sequence, or an unknown number",
    "dtype": "a type of weights that was not measured",
    "model": "a model whose layers are not all full or windowed attention, or are unknown, or whose type is",
}
"""What each departure means."""


def widened(spread: Spread, departures: tuple[str, ...], *, engine_unknown: bool) -> Spread:
    """Return a spread that is wider for each departure, and for an unknown engine as far as engines differ."""
    by = WIDER ** min(len(departures), MAX_DEPARTURES)
    low, high = spread.low / by, spread.high * by
    if engine_unknown:
        factors = (1.0, 1 + STEP.sglang, 1 + STEP.vllm)
        low, high = low * min(factors) / (1 + STEP.vllm), high * max(factors) / (1 + STEP.vllm)
    return Spread(low, high)


def step_evidence(departures: tuple[str, ...]) -> Evidence:
    """Return what the time of a step rests on.

    Runs with data-parallel attention are a family of their own, and those whose replicas only generate.
    """
    for name, family in _OWN_FAMILIES.items():
        if name in departures:
            return evidence_of(family, departures)
    return evidence_of("decode_step", departures)


_OWN_FAMILIES = {
    "data_parallel_attention": "decode_step_data_parallel",
    "disaggregated": "decode_step_disaggregated",
}


def first_token_evidence(departures: tuple[str, ...]) -> Evidence:
    """Return what the time to the first token rests on."""
    grouped = "data_parallel_attention" in departures
    return evidence_of("ttft_data_parallel" if grouped else "ttft", departures)
