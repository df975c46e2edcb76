"""Memory and speed of a serving workload: weights, KV cache, the fullest GPU, decoding and prefill."""

from dataclasses import dataclass, replace
from math import ceil

from app.fit.estimator.model import AS_COUNTED, Model, architecture_paths, range_figure
from app.fit.estimator.weights import Weights, count_weights, find_draft, with_draft, with_own_draft
from app.fit.estimator.workload import ONE_GPU, Deployment, Engine, Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.memory import (
    NO_EXPERTS,
    STEP_SPREAD,
    ExpertShare,
    KvCache,
    ServedModel,
    ServingLoad,
    build_kv_cache,
    inference_need,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    max_sequences,
    missing_for_cache,
    serving_overhead,
    tokens_in_budget,
    with_further_layers,
)
from app.fit.formulas.quantities import (
    DEFAULTS,
    GIB,
    Assumptions,
    InvalidWorkload,
    Range,
    bound,
    estimate,
    estimate_gib,
    exact_gib,
    exact_within,
    plus_minus,
    single_value,
)
from app.fit.formulas.quantization import KV_BITS
from app.fit.results import KvFigures, ServingMemory, evidence_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSetup:
    """A serving workload with its model, GPUs and deployment, and the assumptions recorded for it.

    `weights` is None until with_weights has counted them, and where the model is unknown.
    """

    model: Model
    workload: InferenceWorkload
    gpus: Gpus
    assumptions: Assumptions
    deployment: Deployment = ONE_GPU
    weights: Weights | None = None

    @property
    def concurrency(self) -> int:
        """Sequences that all copies together serve at the same time."""
        return self.assumptions.get(self.workload.concurrency, "inference.concurrency")

    @property
    def engine(self) -> Engine:
        """The serving engine."""
        return self.assumptions.get(self.workload.engine, "inference.engine")

    @property
    def cached_within(self) -> Range:
        """What the KV cache may be, of what is counted; nothing else where the bytes of a sequence are given."""
        return AS_COUNTED if self.workload.kv_bytes_per_sequence is not None else self.model.cached_within

    @property
    def sequences(self) -> int:
        """Sequences that one copy serves at the same time."""
        return ceil(self.concurrency / self.deployment.copies)


def check_context_length(setup: ServingSetup, *, is_service: bool = False) -> bool:
    """Return whether the context exceeds the model's maximum; raise InvalidWorkload unless that is allowed.

    The error is about prompt and output where the context follows from them: those of a service, or of a sequence.
    """
    context, most = setup.workload.context_tokens, setup.model.shape.max_positions
    if context is None or most is None or context <= most:
        return False
    if not setup.workload.allow_longer_context:
        detail = f"more than the model's maximum, {most}; inference.allow_longer_context takes it as extended"
        assumed = {assumption.field for assumption in setup.assumptions.recorded}
        if "inference.context_tokens" not in assumed:
            raise InvalidWorkload("inference.context_tokens", f"{context} is {detail}")
        prompt, output = _SERVICE_LENGTHS if is_service else _SEQUENCE_LENGTHS
        for field, other, part in ((prompt, output, "output"), (output, prompt, "prompt")):
            if other in assumed:
                raise InvalidWorkload(field, f"{context - 1}, and a token of {part} at least, are {detail}")
        raise InvalidWorkload(prompt, f"and {output} together are {context}, {detail}")
    why = f"as asked; the model is made for {most}, and its positions must be scaled (rope_scaling)"
    setup.assumptions.record("inference.context_tokens", context, why)
    return True


_SERVICE_LENGTHS = ("serving.input_tokens", "serving.output_tokens")
_SEQUENCE_LENGTHS = ("inference.prompt_tokens", "inference.output_tokens")


def with_context(workload: InferenceWorkload, shape: Architecture, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload with the context that follows from prompt and output, where one is given and no context is.

    An output that is not given is as long as the prompt. A prompt that is not given is as long as the output, or what
    that leaves of a usual context. Neither makes a sequence longer than the model's maximum. Raises InvalidWorkload for
    a prompt and an output that are longer than the given context.
    """
    prompt, output, context = workload.prompt_tokens, workload.output_tokens, workload.context_tokens
    stated = (prompt or 0) + (output or 0)
    if context is not None:
        if stated > context:
            together = f"and inference.output_tokens together are {stated}, " if prompt and output else f"{stated} is "
            field = "inference.prompt_tokens" if prompt else "inference.output_tokens"
            raise InvalidWorkload(field, f"{together}more than inference.context_tokens, {context}")
        return workload
    if not stated or (None in (prompt, output) and missing_for_cache(shape)):
        return workload
    usual, longest = DEFAULTS["inference.context_tokens"][0], shape.max_positions
    room = max(stated, usual) if longest is None or workload.allow_longer_context else max(1, longest - stated)
    if output is None:
        why = "as many as of the prompt" if stated <= room else "what the prompt leaves of the model's longest context"
        output = assumptions.record("inference.output_tokens", min(stated, room), why)
    if prompt is None:
        why = "as many as of the output, or what that leaves of a usual context; within the model's longest"
        prompt = assumptions.record("inference.prompt_tokens", min(max(stated, usual - stated), room), why)
    context = assumptions.record("inference.context_tokens", prompt + output, "prompt and output together")
    return replace(workload, context_tokens=context, prompt_tokens=prompt, output_tokens=output)


def has_no_context(workload: InferenceWorkload) -> bool:
    """Return whether neither a context nor the bytes of a sequence are given, so that no KV cache is counted."""
    return workload.context_tokens is None and workload.kv_bytes_per_sequence is None


def with_weights(setup: ServingSetup) -> ServingSetup:
    """Return the setup with the weights of one copy, where the model is known."""
    setup = replace(setup, workload=with_own_draft(setup.workload, setup.model.shape, setup.assumptions))
    weights, speculation = count_weights(setup.model, setup.workload, setup.assumptions), setup.workload.speculative
    if weights is not None and speculation is not None:
        weights = with_draft(weights, find_draft(setup.model, weights, speculation))
    return replace(setup, weights=weights)


def weights_range(setup: ServingSetup) -> Range | None:
    """Return the bytes of one copy's weights, a range where the quantization leaves it open; None if unknown."""
    return setup.weights.bytes if setup.weights is not None else None


def kv_cache_of(setup: ServingSetup) -> KvCache | None:
    """Return the KV cache in the requested type and pages; None where the architecture is incomplete."""
    if not setup.model.shape.keeps_cache:
        return None
    missing = architecture_paths(missing_for_cache(setup.model.shape))
    if setup.assumptions.mark_missing("inference.kv_cache", missing):
        return None
    width = setup.workload.kv_bytes_per_value
    if width is None:
        width = KV_BITS[setup.assumptions.get(setup.workload.kv_dtype, "inference.kv_dtype")] / 8
    pages = setup.assumptions.get(setup.workload.block_tokens, "inference.block_tokens")
    cache = build_kv_cache(setup.model.shape, value_bytes=width, block_tokens=pages)
    speculation = setup.workload.speculative
    if speculation is None or speculation.mtp_layers is None:
        return cache
    return with_further_layers(cache, speculation.mtp_layers)


def sequence_bytes(setup: ServingSetup, cache: KvCache | None) -> float | None:
    """Return the KV bytes of one sequence of the requested context, over all GPUs of a copy without replication."""
    if setup.workload.kv_bytes_per_sequence is not None:
        return setup.workload.kv_bytes_per_sequence
    if cache is None or setup.workload.context_tokens is None:
        return None
    return kv_bytes_per_sequence(cache, setup.workload.context_tokens)


def kv_figures(setup: ServingSetup, cache: KvCache | None) -> KvFigures | None:
    """Return the figures of the KV cache; None where neither its layout nor its bytes are known."""
    sequence, budget = sequence_bytes(setup, cache), setup.workload.kv_budget_gib
    if cache is None and sequence is None:
        return None
    room = budget * GIB if budget is not None else None
    within = setup.cached_within
    fitting, tokens_fit = within.divide(1.0), None
    if cache is not None and room is not None:
        tokens = tokens_in_budget(cache, room)
        # Windows can only let more fit.
        has_windows = any(kept.window is not None for kept, _ in cache.kinds)
        tokens_fit = bound(tokens, "tokens") if has_windows else exact_within(tokens, "tokens", fitting)
    fit_in = exact_within(int(room // sequence), "sequences", fitting) if room is not None and sequence else None
    return KvFigures(
        per_token=exact_within(kv_bytes_per_token(cache), "bytes", setup.model.cached_within) if cache else None,
        per_sequence=exact_within(sequence / GIB, "GiB", within) if sequence is not None else None,
        total=exact_within(sequence * setup.concurrency / GIB, "GiB", within) if sequence is not None else None,
        tokens_in_budget=tokens_fit,
        sequences_in_budget=fit_in,
    )


def memory_figures(setup: ServingSetup, weights: Range, cache: KvCache | None) -> ServingMemory:
    """Return what the fullest GPU of a copy needs, and whether that fits."""
    model, parallelism = served_model(setup, weights, cache), setup.deployment.parallelism
    load, overhead = load_of(setup, setup.sequences), _overhead(setup)
    need = inference_need(model, load, parallelism, overhead)
    stored, cached = weights.times(need.weights / weights.mid), single_value(need.kv_cache).within(setup.cached_within)
    total = need.total + stored.spread + cached.spread
    budget = _memory_budget(setup)
    counted = budget is not None and (load.context_tokens or model.sequence_bytes or model.pass_bytes.mid)
    most = max_sequences(model, load, parallelism, budget or 0.0, overhead) if counted else None
    # What an encoder, speech or diffusion model takes for a pass was compared with nothing.
    of_pass = None if setup.model.shape.keeps_cache else evidence_of("pass_memory")
    return ServingMemory(
        tensor_parallel=parallelism.tensor,
        pipeline_parallel=parallelism.pipeline,
        expert_parallel=parallelism.expert,
        data_parallel_attention=parallelism.data,
        copies=setup.deployment.copies,
        weights=range_figure(stored + need.padding, is_exact=parallelism.pipeline == 1),
        kv_cache=range_figure(cached, is_exact=parallelism.pipeline == 1),
        activations=estimate_gib(need.activations, of_pass),
        overhead=estimate_gib(need.overhead),
        need=estimate_gib(total, of_pass),
        budget=exact_gib(budget) if budget is not None else None,
        fits=total.mid <= budget if budget is not None else None,
        max_concurrency=estimate(most.times(setup.deployment.copies), "sequences") if most else None,
    )


def sequences_in_memory(setup: ServingSetup, weights: Range, cache: KvCache | None) -> Range | None:
    """Return how many sequences the memory of a copy holds; None where a sequence takes nothing."""
    load = load_of(setup, 0)
    model, budget = served_model(setup, weights, cache), _memory_budget(setup) or 0.0
    return max_sequences(model, load, setup.deployment.parallelism, budget, _overhead(setup))


def _overhead(setup: ServingSetup) -> Range:
    """Return what the engine takes of a GPU; of one of unknown memory, what it takes of 80 GiB."""
    usable = setup.gpus.usable_gib
    if usable is None:
        usable = setup.assumptions.record("gpus.usable_gib", TYPICAL_USABLE_GIB, "for the overhead of the engine alone")
    utilization = setup.assumptions.get(setup.workload.utilization, "inference.utilization")
    return serving_overhead(setup.deployment.parallelism, usable_bytes=usable * GIB, utilization=utilization)


TYPICAL_USABLE_GIB = 80.0
"""Memory of a GPU that is not known: about that of an A100 or H100 of 80 GB."""


def served_model(setup: ServingSetup, weights: Range, cache: KvCache | None) -> ServedModel:
    """Return the model as all candidates of a placement share it."""
    if not setup.model.shape.keeps_cache:
        return ServedModel(
            weights_bytes=weights.mid,
            layers=setup.model.shape.layers,
            embeddings=setup.weights.embeddings if setup.weights is not None else 0.0,
            pass_bytes=_pass_bytes(setup),
        )
    width = _activation_width(setup)
    if has_no_context(setup.workload):
        why = "no context is given: no KV cache is counted in the need"
        setup.assumptions.record("inference.context_tokens", 0, why)
    shape, stored, experts = setup.model.shape, setup.weights, NO_EXPERTS
    if shape.experts and stored is not None:
        padded = None
        if stored.type.dtype == "mxfp4" and shape.hidden is not None and shape.expert_width is not None:
            padded = shape.hidden, shape.expert_width
        experts = ExpertShare(shape.experts, stored.experts, padded)
    return ServedModel(
        weights_bytes=weights.mid,
        cache=cache,
        sequence_bytes=setup.workload.kv_bytes_per_sequence,
        layers=shape.layers,
        embeddings=stored.embeddings if stored is not None else 0.0,
        replicated=stored.replicated if stored is not None else 0.0,
        experts=experts,
        step_bytes_per_token=6 * width if width is not None else 0.0,
    )


def load_of(setup: ServingSetup, sequences: int) -> ServingLoad:
    """Return the load of some sequences; of a model whose passes are counted by these without batched tokens."""
    tokens, context = 0, setup.workload.context_tokens or 0
    if setup.model.shape.keeps_cache:
        tokens = setup.assumptions.get(setup.workload.max_batched_tokens, "inference.max_batched_tokens")
    return ServingLoad(context_tokens=context, sequences=sequences, batched_tokens=tokens)


IMAGE_BYTES = Range(low=1.0, mid=3.0, high=8.0).times(GIB)
VIDEO_BYTES = Range(low=4.0, mid=12.0, high=40.0).times(GIB)
"""What an image, or a video, takes while it is made: latents, activations and its decoding.

An assumption: it grows with the resolution and the length, which a request does not say.
"""

EAGER_SCORE_BYTES = 6
"""Bytes of a score of attention where it is not fused: in 16 and in 32 bits."""


def _pass_bytes(setup: ServingSetup) -> Range:
    """Return the activations of one sequence of an encoder, 6 (f + h) S, ±40 %, or of one image; an estimate.

    At most with the scores of one layer, a S^2, as code without fused attention has them.
    """
    shape = setup.model.shape
    if shape.kind == "diffusion":
        return VIDEO_BYTES if shape.makes_video else IMAGE_BYTES
    tokens = setup.workload.context_tokens or 0
    width = _activation_width(setup) or 0
    fused = plus_minus(6.0 * width * tokens, STEP_SPREAD)
    return replace(fused, high=fused.high + EAGER_SCORE_BYTES * (shape.heads or 0) * float(tokens) ** 2)


def _activation_width(setup: ServingSetup) -> int | None:
    """Return f + h of the widest layer, counting the experts that a token uses; None where unknown."""
    shape = setup.model.shape
    missing = shape.missing_fields("hidden")
    missing += () if shape.intermediate or shape.moe_intermediate else ("intermediate",)
    if setup.assumptions.mark_missing("inference.memory_per_gpu.activations", architecture_paths(missing)):
        return None
    active = (shape.experts_per_token or 1) * (shape.expert_width or 0) + shape.shared_intermediate
    widths = [shape.intermediate or 0, active if shape.experts else 0]
    return max(widths) + shape.require("hidden")[0]


def _memory_budget(setup: ServingSetup) -> float | None:
    """Return the bytes that a server may use of a GPU; None where its memory is unknown."""
    if setup.gpus.usable_gib is None:
        return None
    utilization = setup.assumptions.get(setup.workload.utilization, "inference.utilization")
    return setup.gpus.usable_gib * GIB * utilization
