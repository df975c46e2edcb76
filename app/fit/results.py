"""The figures of an estimate and of a placement; None where too little is known, or where they do not apply.

They are the shapes of answers, too: POST /estimate and POST /fit have them as they are here. A request that places no
model has the shapes alone, so nothing here computes. How well estimates agree with what was measured is at the end.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from app.fit.formulas.quantities import Assumption, Evidence, Figure, OmittedFigure, WrittenAs, about, if_known
from app.fit.formulas.quantization import DtypeSource

if TYPE_CHECKING:
    from app.fit.formulas.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigures:
    """Parameters of the model."""

    total: Figure = field(metadata=about("All of them."))
    active: Figure = field(metadata=about("Those that a token passes through."))


@dataclass(frozen=True, slots=True, kw_only=True)
class KvFigures:
    """The KV cache of one copy, replicas of heads on tensor ranks not counted."""

    per_token: Figure | None = field(metadata=if_known("Of one sequence, before any window is full."))
    per_sequence: Figure | None = field(metadata=if_known("Of one sequence of the context."))
    total: Figure | None = field(metadata=if_known("Of all sequences at the same time."))
    tokens_in_budget: Figure | None = field(metadata=if_known("Tokens that fit in the budget."))
    sequences_in_budget: Figure | None = field(metadata=if_known("Sequences of the context that fit in the budget."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """The memory that the fullest GPU of one copy needs, and whether it has it."""

    tensor_parallel: int = field(metadata=about("GPUs that each layer is split over."))
    pipeline_parallel: int = field(metadata=about("Stages that the layers are cut into."))
    expert_parallel: int = field(metadata=about("GPUs that routed experts are distributed over; 1: each is split."))
    data_parallel_attention: int = field(metadata=about("Groups of GPUs with sequences and attention of their own."))
    copies: int = field(metadata=about("Copies of the model that the GPUs hold."))
    weights: Figure = field(metadata=about("Weights on the fullest GPU."))
    kv_cache: Figure = field(metadata=about("With heads that tensor ranks replicate."))
    activations: Figure = field(metadata=about("Of one step."))
    overhead: Figure = field(metadata=about("The runtime and the buffers of collectives."))
    need: Figure = field(metadata=about("All parts together."))
    budget: Figure | None = field(metadata=if_known("The memory of a GPU that may be used; needs gpus.usable_gib."))
    fits: bool | None = field(metadata=about("Whether the middle of the need is within the budget."))
    max_concurrency: Figure | None = field(metadata=if_known("Sequences that all copies serve at the same time."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeFigures:
    """Generating tokens: the bound that no system beats, and the expected figures."""

    step: Figure = field(metadata=about("The least time of one token of every sequence."))
    expected_step: Figure = field(metadata=about("The expected time of a step."))
    tokens_per_s: Figure = field(metadata=about("The most of all copies together."))
    expected_tokens_per_s: Figure = field(metadata=about("Of all copies together, as expected."))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeFigures:
    """Reading a batch of sequences without generating: the bound that no system beats, and an assumption."""

    step: Figure = field(metadata=about("The least time of a batch: `concurrency` sequences of `context_tokens`."))
    expected_step: Figure = field(metadata=about("The expected time of a batch."))
    tokens_per_s: Figure = field(metadata=about("The most that all copies together read."))
    expected_tokens_per_s: Figure = field(metadata=about("Of all copies together; compared with no measurement yet."))


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceFigures:
    """A model that is served."""

    weights: Figure | None = field(metadata=if_known("Weights of one copy."))
    kv_cache: KvFigures | None = field(metadata=if_known("The KV cache; needs inference.context_tokens."))
    memory_per_gpu: ServingMemory | None = field(metadata=if_known("The fullest GPU of one copy."))
    decode: DecodeFigures | None = field(metadata=if_known("Needs gpus.bandwidth_gb_per_s."))
    prefill: Figure | None = field(metadata=if_known("Time to read one prompt; needs gpus.peak_tflops."))
    ttft: Figure | None = field(
        metadata=if_known("Time to the first token under the load; needs gpus.peak_tflops and gpus.bandwidth_gb_per_s.")
    )
    encode: EncodeFigures | None = field(default=None, metadata=if_known("Of an encoder; needs gpus.peak_tflops."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DisaggregationFigures:
    """Replicas that only read prompts, and replicas that only generate."""

    prefill_replicas: int = field(metadata=about("Copies that read prompts, at the peak."))
    decode_replicas: int = field(metadata=about("Copies that generate, at the peak."))
    prefill_replicas_at_mean: int = field(metadata=about("Copies that read prompts, of the average load."))
    decode_replicas_at_mean: int = field(metadata=about("Copies that generate, of the average load."))
    prefill_busy: float = field(metadata=about("Share of the time that prompts are read, at the peak: 0 to 1."))
    kv_transfer: Figure = field(metadata=about("Time in which the cache of a prompt moves to the copy that generates."))


_MOST = about("The most with which the targets are met and memory is enough.")
_LIMIT = about(
    "What limits that: memory, tpot, ttft, prefill (prompts of others take most of a step) or engine (1,024 requests). "
    "Extensible."
)
_COPIES = if_known("With `disaggregated`: copies of each kind; `concurrency_per_replica` is of those that generate.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """What a service takes of this placement; figures are left out where even one request misses a target."""

    meets_targets: bool = field(
        metadata=about("Whether a replica takes at least one request within memory and targets.")
    )
    fits: bool | None = field(metadata=about("Whether `gpus.count` is enough for the peak; null if it is not given."))
    replicas: int | None = field(metadata=about("Copies that share the requests at the peak."))
    replicas_at_mean: int | None = field(metadata=about("Copies that the average load takes."))
    gpus: int | None = field(metadata=about("GPUs of all replicas at the peak."))
    gpus_at_mean: int | None = field(metadata=about("GPUs of the replicas that the average load takes."))
    concurrency_per_replica: int = field(metadata=about("Requests that each replica has open at the peak."))
    max_concurrency_per_replica: int = field(metadata=_MOST)
    limited_by: str = field(metadata=_LIMIT)
    request: Figure | None = field(
        default=None, metadata=if_known("Time of a whole request: ttft + output tokens x expected_step.")
    )
    requests_per_s: Figure | None = field(
        default=None, metadata=if_known("Requests that all replicas answer at most, a second.")
    )
    peak_requests_per_s: Figure | None = field(default=None, metadata=if_known("Requests a second at the peak."))
    mean_requests_per_s: Figure | None = field(default=None, metadata=if_known("Requests a second on average."))
    disaggregation: DisaggregationFigures | None = field(default=None, metadata=_COPIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFigures:
    """Model states of the fullest GPU."""

    recipe: str = field(metadata=about("The recipe, or `given`. Extensible."))
    bytes_per_param: Figure = field(metadata=about("Before sharding."))
    weights: Figure = field(metadata=about("Weights that are trained."))
    gradients: Figure = field(metadata=about("Gradients."))
    optimizer: Figure = field(metadata=about("State of the optimizer."))
    frozen_base: Figure = field(metadata=about("Of LoRA and QLoRA."))
    static: Figure = field(metadata=about("Whatever else every GPU holds."))
    total: Figure = field(metadata=about("All of them."))
    host: Figure | None = field(metadata=if_known("Memory of a host for what is offloaded."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFigures:
    """Activations of one micro-batch on one GPU."""

    formula: str = field(metadata=about("korthikanti, modern or zero. Extensible."))
    hidden_states: Figure | None = field(metadata=if_known("One hidden state."))
    checkpoints: Figure | None = field(metadata=if_known("The inputs of all layers: what full recomputation keeps."))
    layer_working_set: Figure | None = field(metadata=if_known("Activations of one layer."))
    kept: Figure | None = field(metadata=if_known("Activations of all layers, with the recomputation in the request."))
    logits_fp32: Figure | None = field(metadata=if_known("The logits of one micro-batch in fp32."))
    checkpointed_peak: Figure | None = field(metadata=if_known("Checkpoints, one layer's working set, and logits."))
    selective_saving: Figure | None = field(
        metadata=if_known("Share of a GPT layer that selective recomputation saves.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """The memory that the fullest GPU needs, and whether it has it."""

    tensor_parallel: int = field(metadata=about("GPUs that each layer is split over."))
    pipeline_parallel: int = field(metadata=about("Stages that the layers are cut into."))
    data_parallel: int = field(metadata=about("Copies of the model that train together."))
    states: Figure = field(metadata=about("Weights, gradients, optimizer and frozen base."))
    activations: Figure | None = field(metadata=if_known("With logits; needs training.sequence_tokens."))
    buffers: Figure = field(metadata=about("What sharding gathers for a moment."))
    overhead: Figure = field(metadata=about("The runtime and the buffers of collectives."))
    need: Figure = field(metadata=about("All parts together."))
    fits: bool | None = field(metadata=about("Whether the middle of the need is within gpus.usable_gib."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeFigures:
    """What training computes, and how long it takes."""

    model_flops: Figure | None = field(metadata=if_known("What the model needs, FLOPs."))
    hardware_flops: Figure | None = field(metadata=if_known("Including recomputation."))
    tokens_per_s: Figure | None = field(metadata=if_known("Of all GPUs together."))
    gpu_hours: Figure | None = field(metadata=if_known("Hours of all GPUs."))
    days: Figure | None = field(metadata=if_known("How long all GPUs together take."))
    iteration: Figure | None = field(metadata=if_known("One step of the global batch."))
    iteration_flops: Figure | None = field(metadata=if_known("FLOPs of one step of the global batch."))
    hfu_over_mfu: Figure | None = field(metadata=if_known("What selective recomputation adds, for a GPT."))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFigures:
    """A model that is trained."""

    trainable_params: Figure | None = field(metadata=if_known("Parameters that are trained."))
    states: StateFigures | None = field(metadata=if_known("Model states of the fullest GPU."))
    activations: ActivationFigures | None = field(metadata=if_known("Activations; needs training.sequence_tokens."))
    memory_per_gpu: TrainingMemory | None = field(metadata=if_known("The fullest GPU."))
    compute: ComputeFigures = field(metadata=about("The compute, and how long it takes."))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """The cost at the given price; every GPU is paid for."""

    per_hour: Figure = field(metadata=about("All GPUs for an hour."))
    per_month: Figure = field(metadata=about("730 hours."))
    per_job: Figure | None = field(metadata=if_known("The whole training."))
    per_million_tokens: Figure | None = field(
        metadata=if_known("Generated at the expected rate; of a service those it generates on average.")
    )
    per_request: Figure | None = field(
        default=None, metadata=if_known("Of a service: all GPUs over the requests that it gets on average.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsType:
    """The data type that the weights are counted in, and where it comes from."""

    dtype: str | None = field(
        metadata=about("The type: `mxfp4`; null if bits or bytes were given instead. Extensible.")
    )
    source: Annotated[DtypeSource, WrittenAs("str")] = field(
        metadata=about(
            "request, preset (its release), quantization_config, dtype or torch_dtype (of the config), safetensors or "
            "default. Extensible."
        )
    )
    detail: str = field(metadata=about("The field of the source, and how it stores weights."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The whole result; `architecture` is the model as it was completed."""

    architecture: "Architecture"
    parameters: ParameterFigures | None
    inference: InferenceFigures | None = None
    training: TrainingFigures | None = None
    serving: ServiceReport | None = None
    cost: CostFigures | None = None
    weights_type: WeightsType | None = None
    assumptions: tuple[Assumption, ...] = ()
    left_out: tuple[OmittedFigure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFigures:
    """What an option sustains of a service; its times are those of `speed`, at the peak."""

    replicas: int = field(metadata=about("Copies that share the requests."))
    nodes_at_mean: int = field(metadata=about("VMs that the average load takes: where autoscaling ends."))
    nodes_at_peak: int = field(metadata=about("VMs that the peak takes."))
    concurrency_per_replica: int = field(metadata=about("Requests that each replica has open at the peak."))
    max_concurrency_per_replica: int = field(metadata=_MOST)
    limited_by: str = field(metadata=_LIMIT)
    request: Figure = field(
        metadata=about("Time of a whole request at the peak: ttft + output tokens x expected_step.")
    )
    requests_per_s: Figure = field(metadata=about("Requests that all replicas answer at most, a second."))
    peak_requests_per_s: Figure = field(metadata=about("Requests a second at the peak."))
    mean_requests_per_s: Figure = field(metadata=about("Requests a second on average."))
    disaggregation: DisaggregationFigures | None = field(default=None, metadata=_COPIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedFigures:
    """How fast an option is: bounds and estimates; exact where a training states it."""

    step: Figure | None = field(metadata=if_known("The least time of one token of every sequence; of a server."))
    expected_step: Figure | None = field(metadata=if_known("The expected time of a step; of a server."))
    tokens_per_s: Figure | None = field(metadata=if_known("The most that all copies generate; of a server."))
    expected_tokens_per_s: Figure = field(metadata=about("Generated, or trained on."))
    ttft: Figure | None = field(metadata=if_known("Time to the first token under the load; of a server."))
    hours: Figure | None = field(metadata=if_known("Of the whole training, where its tokens are given."))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerGpuMemory:
    """The memory that the fullest GPU needs, part by part, and its budget; parts that do not apply are left out."""

    weights: Figure | None = field(metadata=if_known("Of a server."))
    kv_cache: Figure | None = field(metadata=if_known("Of a server."))
    states: Figure | None = field(metadata=if_known("Of a training: weights, gradients, optimizer, frozen base."))
    activations: Figure | None = field(metadata=if_known("Of one step, or of one micro-batch."))
    buffers: Figure | None = field(metadata=if_known("Of a training: what sharding gathers for a moment."))
    overhead: Figure = field(metadata=about("The runtime and the buffers of collectives."))
    need: Figure = field(metadata=about("All parts together."))
    budget: Figure | None = field(metadata=if_known("The memory of a GPU that may be used."))


TABLE = Path(__file__).with_stem("accuracy").with_suffix(".csv")
"""The file with the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyAccuracy:
    """How the estimates of one figure, for one kind of workload, agree with measurements."""

    family: str = field(metadata=about("Id of the family, which an estimate's evidence names: `decode_step`."))
    title: str = field(metadata=about("What is estimated."))
    figure: str = field(metadata=about("The figure of POST /estimate: `inference.ttft`."))
    unit: str = field(metadata=about("The unit of the figure."))
    leave_one_out_error: float | None = field(
        metadata=about("Median error with the constants fitted without what is estimated; null where none is fitted.")
    )
    left_out: str | None = field(
        metadata=about("What they are fitted without: model is the error of models not in the data. Extensible.")
    )
    left_out_n: int | None = field(metadata=about("Number of measurements of that error."))
    left_out_in_range_share: float | None = field(
        metadata=about("Share of them within the range of what was not measured; null where it has none.")
    )
    left_out_range_width: float | None = field(
        metadata=about("That range's high / low; in the median, if they differ.")
    )
    n: int = field(metadata=about("Number of measurements."))
    departures: str = field(
        metadata=about("How many of them depart from the others, and in what: `gpu:14 gpu+link:4`. Extensible.")
    )
    in_range_share: float = field(metadata=about("Share of the measurements between low and high, 0 to 1."))
    range_width: float = field(metadata=about("Median of high / low."))
    median_error: float = field(metadata=about("Median of |mid / measured - 1|."))
    median_ratio: float = field(metadata=about("Median of mid / measured."))
    worst_ratio: float = field(metadata=about("The mid / measured that is furthest from 1."))
    compared_on: date = field(metadata=about("Day of the comparison."))
    source: str = field(metadata=about("Where the measurements are from."))
    license: str = field(metadata=about("The licence of the measurements."))


COLUMNS = tuple(field.name for field in fields(FamilyAccuracy))
"""The columns of the table."""


@lru_cache(maxsize=1)
def read_accuracy() -> tuple[FamilyAccuracy, ...]:
    """Read the recorded table."""
    text = TABLE.read_text(encoding="utf-8")
    hints = get_type_hints(FamilyAccuracy)
    return tuple(
        FamilyAccuracy(**{name: _parse(value, hints[name]) for name, value in row.items()})
        for row in csv.DictReader(text.splitlines())
    )


def _parse(text: str, hint: Any) -> Any:
    if hint is date:
        return date.fromisoformat(text)
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not NoneType]
    return None if text == "" and get_args(hint) else kinds[0](text)


@lru_cache(maxsize=4096)
def evidence_of(family: str, outside: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence of a family: `n` of its measurements depart in all of that; 0 where none does."""
    row = next((accuracy for accuracy in read_accuracy() if accuracy.family == family), None)
    if row is None or not outside:
        return Evidence(family=family, n=row.n if row is not None else 0, outside=outside)
    groups = (group.split(":") for group in row.departures.split())
    n = sum(int(count) for names, count in groups if set(outside) <= set(names.split("+")))
    return Evidence(family=family, n=n, outside=outside)


DEPARTURES: Mapping[str, str] = {
    "gpu": "this GPU",
    "vendor": "GPUs of AMD",
    "gpus": "this number of GPUs",
    "peak": "a GPU of unknown peak",
    "link": "GPUs joined by PCIe",
    "tensor_parallel": "this number of GPUs per layer",
    "data_parallel_attention": "data-parallel attention",
    "pipeline_parallel": "stages",
    "disaggregated": "copies that only read prompts",
    "speculative": "speculative decoding",
    "sequences": "this number of users",
    "context": "a context this long",
    "dtype": "weights of this type",
    "model": "a model like this",
    "sequence": "sequences of this length",
    "batch": "a batch that is not stated, on this number of GPUs",
}
"""What the evidence of an estimate does not cover, in a few words."""
