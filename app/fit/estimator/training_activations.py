"""From a workload that is trained to its activations, as far as the shape and the batch are known."""

from dataclasses import replace

from app.fit.estimator.report import ActivationFigures
from app.fit.estimator.training_memory import Training
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
from app.fit.formulas.quantities import Figure, Range, estimate_gib, exact, exact_gib
from app.fit.formulas.training import Passing


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
