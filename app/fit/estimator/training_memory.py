"""From a workload that is trained to the memory it takes: model states, and what the fullest GPU needs."""

from dataclasses import dataclass, replace

from app.fit.estimator.model import Model, weight_figure
from app.fit.estimator.parallelism import ALONE, Placing
from app.fit.estimator.report import ActivationFigures, StateFigures, TrainingMemory
from app.fit.estimator.weights import stored_in
from app.fit.estimator.workload import Gpus, TrainingWorkload
from app.fit.formulas.activations import (
    Batch,
    Formula,
    Keeping,
    Layer,
    checkpoint_bytes,
    hidden_state_bytes,
    kept_bytes,
    layer_bytes,
    logits_bytes,
    selective_saving,
)
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.optimizer import (
    RECIPES,
    Recipe,
    lora_matrices,
    lora_params,
    missing_for_modules,
    offloaded_host_bytes,
)
from app.fit.formulas.quantities import GIB, NOTHING, Figure, Range, estimate_gib, exact, exact_gib, held_gib
from app.fit.formulas.training import Passing, Trained, TrainingNeed, training_need

ADAPTED = {"lora": "bf16", "qlora": "nf4_dq"}
"""Methods that train adapters beside a frozen base, and the base's usual type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A workload, the model, the GPUs and the placing together; the ledger notes what is assumed."""

    model: Model
    job: TrainingWorkload
    gpus: Gpus
    ledger: Ledger
    placing: Placing = ALONE

    @property
    def method(self) -> str:
        """Full, lora or qlora."""
        return self.ledger.take(self.job.method, "training.method")


def trainable(asked: Training) -> int | None:
    """Count the parameters that are trained; None where the model, or a matrix of it, is not known."""
    job, count, shape = asked.job, asked.model.count, asked.model.shape
    if asked.method not in ADAPTED:
        asked.ledger.lacks("training.states", () if count else ("architecture.params",))
        return count.total if count else None
    rank = asked.ledger.take(job.lora_rank, "training.lora_rank")
    if job.lora_matrices is not None:
        return lora_params(rank, job.lora_matrices)
    modules = asked.ledger.take(job.lora_modules, "training.lora_modules")
    if shape.kv_lora_rank is not None:
        raise Impossible(
            "training.lora_matrices", "is missing: with attention mla, list the matrices that get adapters"
        )
    missing = tuple(f"architecture.{name}" for name in missing_for_modules(shape, modules))
    if asked.ledger.lacks("training.trainable_params", missing):
        return None
    return lora_params(rank, lora_matrices(shape, modules))


def recipe_of(asked: Training) -> tuple[str, Recipe]:
    """Name the recipe, and the bytes a parameter; bytes that are given count before the recipe's."""
    job = asked.job
    given = {
        "weights": job.weight_bytes_per_param,
        "gradients": job.gradient_bytes_per_param,
        "optimizer": job.optimizer_bytes_per_param,
    }
    known = {name: size for name, size in given.items() if size is not None}
    if len(known) == len(given):
        return "given", Recipe(**known)
    if job.recipe is None and asked.method in ADAPTED:
        name = asked.ledger.note("training.recipe", "mixed_adam", "adapters are trained with 16 bytes a parameter")
    else:
        name = asked.ledger.take(job.recipe, "training.recipe")
    return name, replace(RECIPES[name], **known)


def frozen_base(asked: Training) -> Range | None:
    """Bytes of the base that adapters are trained beside; none in full training, None where the model is not known."""
    job, count = asked.job, asked.model.count
    if asked.method not in ADAPTED:
        return NOTHING
    if asked.ledger.lacks("training.states", () if count else ("architecture.params",)) or count is None:
        return None
    usual = ADAPTED[asked.method]
    dtype = job.base_dtype or asked.ledger.note("training.base_dtype", usual, "usual for the method")
    return stored_in(asked.model, count, dtype)[1]


def trained(asked: Training, params: int, passing: Passing | None) -> Trained | None:
    """The model as all candidates of a placement share it; None where the frozen base is not known."""
    job, count = asked.job, asked.model.count
    frozen = frozen_base(asked)
    if frozen is None:
        return None
    return Trained(
        params=params,
        recipe=recipe_of(asked)[1],
        stage=asked.ledger.take(job.zero_stage, "training.zero_stage"),
        offload=asked.ledger.take(job.offload, "training.offload"),
        frozen_bytes=frozen.mid,
        static_bytes=job.static_bytes_per_gpu or 0.0,
        layers=asked.model.shape.layers,
        embeddings=count.embeddings / count.total if count else 0.0,
        largest_layer=count.largest_layer if count else 0.0,
        gathered=count.total if count else 0.0,
        passing=passing,
    )


def need_of(asked: Training, job: Trained) -> TrainingNeed:
    """What the fullest GPU needs; shards are the copies, or the shard group of HSDP."""
    return training_need(job, asked.placing.split, asked.job.shard_group or asked.placing.copies)


def state_figures(asked: Training, job: Trained, need: TrainingNeed) -> StateFigures:
    """The model states of the fullest GPU, part by part."""
    name, recipe = recipe_of(asked)
    host = None
    if job.offload != "none":
        host = offloaded_host_bytes(job.params, asked.ledger.take(asked.job.gpus_per_node, "training.gpus_per_node"))
    base, whole = _base_on_gpu(asked, need), asked.placing.split.pipeline == 1
    return StateFigures(
        recipe=name,
        bytes_per_param=exact(recipe.weights + recipe.gradients + recipe.optimizer, "bytes"),
        weights=held_gib(need.states.weights, exactly=whole),
        gradients=held_gib(need.states.gradients, exactly=whole),
        optimizer=held_gib(need.states.optimizer, exactly=whole),
        frozen_base=weight_figure(base, exactly=whole),
        static=exact_gib(need.static),
        total=weight_figure(base + (need.states.total + need.static), exactly=whole),
        host=estimate_gib(host) if host else None,
    )


def _base_on_gpu(asked: Training, need: TrainingNeed) -> Range:
    """The frozen base's share of the fullest GPU."""
    base = frozen_base(asked)
    return base.times(need.frozen / base.mid) if base is not None and base.mid else NOTHING


def whole_need(asked: Training, need: TrainingNeed) -> Range:
    """All that the fullest GPU needs, bytes, as uncertain as its parts: a quantized base is, too."""
    return need.total + _base_on_gpu(asked, need).spread


def training_memory(asked: Training, job: Trained, need: TrainingNeed) -> TrainingMemory:
    """What the fullest GPU needs, and whether it has it."""
    usable, placing, base = asked.gpus.usable_gib, asked.placing, _base_on_gpu(asked, need)
    return TrainingMemory(
        tensor_parallel=placing.split.tensor,
        pipeline_parallel=placing.split.pipeline,
        data_parallel=placing.copies,
        states=weight_figure(base + (need.states.total + need.static), exactly=placing.split.pipeline == 1),
        activations=estimate_gib(need.activations) if job.passing else None,
        buffers=estimate_gib(need.buffers),
        overhead=estimate_gib(need.overhead),
        need=estimate_gib(whole_need(asked, need)),
        fits=need.total.mid <= usable * GIB if usable is not None else None,
    )


def batch_of(asked: Training) -> Batch | None:
    """What passes at a time; None where no sequence is given."""
    if asked.job.sequence_tokens is None:
        return None
    micro = asked.ledger.take(asked.job.micro_batch, "training.micro_batch")
    return Batch(sequence_tokens=asked.job.sequence_tokens, micro_batch=micro)


def keeping_of(asked: Training) -> Keeping:
    """How activations are kept on one GPU of the placing."""
    job, split = asked.job, asked.placing.split
    return Keeping(
        formula=_formula(asked),
        recompute=asked.ledger.take(job.recompute, "training.recompute"),
        tensor=split.tensor,
        sequence_parallel=job.sequence_parallel,
        pipeline=split.pipeline,
        chunks=job.pipeline_chunks or 1,
        micro_batches=job.micro_batches,
        value_bytes=asked.ledger.take(job.activation_bytes, "training.activation_bytes"),
        copies=job.hidden_state_copies,
    )


def _formula(asked: Training) -> Formula:
    if asked.job.activation_formula is not None:
        return asked.job.activation_formula
    if asked.model.shape.gated:
        return asked.ledger.note("training.activation_formula", "modern", "the MLP is gated: a modern layer")
    return asked.ledger.note("training.activation_formula", "korthikanti", "the MLP is plain: a GPT layer")


def layer_of(asked: Training) -> Layer | None:
    """The widths of a layer; None where the formula misses one. A GPT's MLP has 4h, of experts a token's count."""
    shape, job = asked.model.shape, asked.job
    simple = job.hidden_state_copies is not None or _formula(asked) == "zero"
    needed = ("hidden",) if simple else ("hidden", "heads")
    missing = tuple(f"architecture.{name}" for name in shape.missing(*needed))
    if asked.ledger.lacks("training.activations", missing):
        return None
    (hidden,) = shape.known("hidden")
    width = (shape.experts_per_token or 0) * (shape.expert_width or 0) + shape.shared_intermediate
    if not shape.experts:
        width = shape.intermediate or 0
    if not width and not simple:
        width = asked.ledger.note("architecture.intermediate", 4 * hidden, "4 x hidden, a GPT's MLP, for activations")
    kv_width = (shape.kv_heads or 0) * (shape.head_dim or 0)
    return Layer(hidden=hidden, heads=shape.heads or 0, kv_width=kv_width or hidden, intermediate=width)


def passing_of(asked: Training) -> Passing | None:
    """What passes through the model on every candidate of a placement; None where too little is known."""
    batch, layers = batch_of(asked), asked.model.shape.layers
    if batch is None:
        return None
    layer = layer_of(asked)
    if layer is None or layers is None:
        return None
    return Passing(layer=layer, layers=layers, batch=batch, keeping=keeping_of(asked), vocab=asked.model.shape.vocab)


def activation_figures(asked: Training) -> ActivationFigures | None:
    """Every figure of activations that the shape and the batch allow; None without a sequence."""
    batch, hidden = batch_of(asked), asked.model.shape.hidden
    if batch is None or hidden is None:
        return None
    keeping, layer = keeping_of(asked), layer_of(asked)
    return ActivationFigures(
        formula=keeping.formula,
        hidden_states=exact_gib(hidden_state_bytes(hidden, batch, keeping.value_bytes)),
        selective_saving=exact(selective_saving(layer, batch), "share") if layer and layer.heads else None,
        **_of_layers(asked, batch, keeping, layer),
    )


def _of_layers(asked: Training, batch: Batch, keeping: Keeping, layer: Layer | None) -> dict[str, Figure | None]:
    shape = asked.model.shape
    inputs = checkpoint_bytes(shape.hidden, shape.layers, batch, keeping) if shape.hidden and shape.layers else None
    working = layer_bytes(layer, batch, keeping) if layer else None
    kept = kept_bytes(layer, shape.layers, batch, keeping) if layer and shape.layers else None
    logits = logits_bytes(shape.vocab, batch, keeping.tensor) if shape.vocab else None
    full = replace(keeping, recompute="full")
    peak = kept_bytes(layer, shape.layers, batch, full) + (logits or 0.0) if layer and shape.layers else None
    return {
        "checkpoints": exact_gib(inputs) if inputs is not None else None,
        "layer_working_set": _gib(working, keeping),
        "kept": _gib(kept, keeping),
        "logits_fp32": exact_gib(logits) if logits is not None else None,
        "checkpointed_peak": _gib(peak, keeping),
    }


def _gib(size: Range | None, keeping: Keeping) -> Figure | None:
    """Exact by the count of a GPT's layer, or where the number of copies is given; else an estimate."""
    if size is None:
        return None
    counted = keeping.copies is not None or keeping.formula == "korthikanti"
    return exact_gib(size.mid) if counted else estimate_gib(size)
