"""Memory of a training workload: model states, activations, and what the fullest GPU needs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.fit.estimator.model import Model, architecture_paths, range_figure
from app.fit.estimator.weights import weights_in_dtype
from app.fit.estimator.workload import ONE_GPU, Deployment, Gpus, TrainingWorkload
from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.optimizer import (
    MODULE_NAMES,
    RECIPES,
    AdaptedMatrix,
    Recipe,
    lora_matrices,
    lora_params,
    missing_for_modules,
    offloaded_host_bytes,
)
from app.fit.formulas.quantities import (
    DEFAULTS,
    GIB,
    ZERO,
    Assumptions,
    Figure,
    InvalidWorkload,
    Range,
    estimate,
    estimate_gib,
    exact,
    exact_gib,
    exact_or_bound_gib,
)
from app.fit.formulas.quantization import FULL_BITS
from app.fit.formulas.training_memory import (
    INPUT_BYTES,
    ActivationPolicy,
    Formula,
    ForwardPass,
    LayerWidths,
    MicroBatch,
    Recompute,
    TrainedModel,
    TrainingNeed,
    activation_bytes,
    checkpoint_bytes,
    hidden_state_bytes,
    layer_bytes,
    logits_bytes,
    selective_saving,
    training_need,
)
from app.fit.formulas.weight_matrices import weight_matrices
from app.fit.results import ActivationFigures, StateFigures, TrainingMemory, evidence_of

QUANTIZED_COPIES = {precision: 0.0 if precision == "bf16" else 2 * size for precision, size in INPUT_BYTES.items()}
"""Bytes of a weight's copies by precision: one quantized along its rows, one along its columns."""

BASE_DTYPES = {"lora": "bf16", "qlora": "nf4_dq"}
"""Methods that train adapters on a frozen base, and the usual type of the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """A training workload with its model, GPUs and deployment, and the assumptions recorded for it."""

    model: Model
    workload: TrainingWorkload
    gpus: Gpus
    assumptions: Assumptions
    deployment: Deployment = ONE_GPU

    @property
    def method(self) -> str:
        """One of full, lora and qlora."""
        return self.assumptions.get(self.workload.method, "training.method")

    @property
    def sequence_tokens(self) -> int:
        """Tokens of a sequence: as given, else 2,048, or the model's maximum where that is less.

        2,048 is the default of LLaMA-Factory (cutoff_len, data_args.py) and of Unsloth (max_seq_length, loader.py), and
        what torchtune measures its recipes with, which cut nothing by default (README.md). TRL's default is 1,024
        (max_length, sft_config.py), Axolotl's 512 (sequence_len, schemas/config.py), with 2,048 to 8,192 in examples.
        """
        field, most = "training.sequence_tokens", self.model.shape.max_positions
        if self.workload.sequence_tokens is None and most is not None and most < DEFAULTS[field][0]:
            return self.assumptions.record(field, most, "the longest sequence of the model")
        return self.assumptions.get(self.workload.sequence_tokens, field)

    @property
    def recompute(self) -> Recompute:
        """Which activations are recomputed: as given, else all of adapters and none of a full training.

        Adapters are trained with checkpointing by default in TRL (gradient_checkpointing, sft_config.py), PEFT
        (prepare_model_for_kbit_training), Unsloth (get_peft_model), LLaMA-Factory (disable_gradient_checkpointing is
        false), and in the recipes of torchtune and Axolotl.
        """
        if self.workload.recompute is None and self.method in BASE_DTYPES:
            why = "the default of TRL, PEFT, Unsloth and LLaMA-Factory for adapters: they checkpoint every layer"
            return self.assumptions.record("training.recompute", "full", why)
        return self.assumptions.get(self.workload.recompute, "training.recompute")


def trainable_params(setup: TrainingSetup) -> int | None:
    """Return the number of trained parameters; None where the model, or a matrix of it, is unknown."""
    workload, count = setup.workload, setup.model.count
    if setup.method not in BASE_DTYPES:
        setup.assumptions.mark_missing("training.states", () if count else ("architecture.params",))
        return count.total if count else None
    rank = setup.assumptions.get(workload.lora_rank, "training.lora_rank")
    matrices = _adapted_matrices(setup)
    if matrices is None:
        return None
    _check_rank(setup, matrices)
    return lora_params(rank, matrices)


def _adapted_matrices(setup: TrainingSetup) -> tuple[AdaptedMatrix, ...] | None:
    """Return the matrices that get adapters; None where the dimensions of one are unknown.

    Where layers have matrices of other names than the modules, `all-linear` of PEFT has the most adapters: those of
    every matrix of the layers. Given modules are the matrices of those names.
    """
    workload, shape, given = setup.workload, setup.model.shape, setup.workload.lora_modules
    if workload.lora_matrices is not None:
        return workload.lora_matrices
    if not _has_other_names(shape):
        modules = setup.assumptions.get(given, "training.lora_modules")
        missing = architecture_paths(missing_for_modules(shape, modules))
        lacking = setup.assumptions.mark_missing("training.trainable_params", missing)
        return None if lacking else lora_matrices(shape, modules)
    if setup.assumptions.mark_missing("training.trainable_params", architecture_paths(missing_for_count(shape))):
        return None
    if given is None:
        why = "the most there can be: adapters on every matrix of the layers, whose names differ from model to model"
        setup.assumptions.record("training.lora_modules", "all", why)
    names = {name for module in given or () for name in MODULE_NAMES[module]}
    matrices = tuple(
        AdaptedMatrix(inputs=matrix.columns, outputs=matrix.rows, count=matrix.count)
        for matrix in weight_matrices(shape)
        if matrix.part != "lm_head" and (given is None or matrix.suffix in names)
    )
    if given and not matrices:
        raise InvalidWorkload("training.lora_modules", "are of no matrix of this model; lora_matrices takes any")
    return matrices


def _has_other_names(shape: Architecture) -> bool:
    """Whether layers have matrices beside those of the modules: of MLA, of linear attention, of indexers."""
    return shape.kv_lora_rank is not None or bool(shape.groups)


def has_most_adapters(setup: TrainingSetup) -> bool:
    """Whether the trained parameters are the most that adapters can have, rather than a count of those named."""
    workload = setup.workload
    named = workload.lora_matrices is not None or workload.lora_modules is not None
    return setup.method in BASE_DTYPES and not named and _has_other_names(setup.model.shape)


def _check_rank(setup: TrainingSetup, matrices: Iterable[AdaptedMatrix]) -> None:
    """Raise InvalidWorkload for a given rank above the smaller side of every matrix; record it where of some.

    The product of an adapter has no higher rank than that. PEFT accepts one for narrow matrices: those of the KV heads
    are often narrower than a rank that suits the others.
    """
    rank, sides = setup.workload.lora_rank, [min(matrix.inputs, matrix.outputs) for matrix in matrices]
    if rank is None or not sides:
        return
    if rank > max(sides):
        detail = (
            f"{rank:,} is no low rank: at most {max(sides):,}, the smaller side of the widest matrix with an adapter"
        )
        raise InvalidWorkload("training.lora_rank", detail)
    if rank > min(sides):
        why = f"more than the smaller side of some matrices, {min(sides):,}, for which it is no low rank"
        setup.assumptions.record("training.lora_rank", rank, why)


def recipe_of(setup: TrainingSetup) -> tuple[str, Recipe]:
    """Return the recipe's name and bytes per parameter; given bytes take precedence over the recipe's."""
    workload = setup.workload
    given = {
        "weights": workload.weight_bytes_per_param,
        "gradients": workload.gradient_bytes_per_param,
        "optimizer": workload.optimizer_bytes_per_param,
    }
    stated = {name: size for name, size in given.items() if size is not None}
    if len(stated) == len(given):
        return "given", Recipe(**stated)
    if workload.recipe is None and setup.method in BASE_DTYPES:
        why = "adapters are trained with 16 bytes a parameter"
        name = setup.assumptions.record("training.recipe", "mixed_adam", why)
    else:
        name = setup.assumptions.get(workload.recipe, "training.recipe")
    return name, replace(RECIPES[name], **stated)


def frozen_base_bytes(setup: TrainingSetup) -> Range | None:
    """Return the bytes of the frozen base of adapters: zero in full training, None where the model is unknown."""
    count = setup.model.count
    if setup.method not in BASE_DTYPES:
        return ZERO
    if setup.assumptions.mark_missing("training.states", () if count else ("architecture.params",)) or count is None:
        return None
    return weights_in_dtype(setup.model, count, _base_dtype(setup))[1]


def _base_dtype(setup: TrainingSetup) -> str:
    """Return the type of the frozen base of adapters: as given, else the usual one of the method."""
    usual = BASE_DTYPES[setup.method]
    return setup.workload.base_dtype or setup.assumptions.record("training.base_dtype", usual, "usual for the method")


def has_quantized_base(setup: TrainingSetup) -> bool:
    """Return whether adapters are trained on a base of fewer than 16 bits."""
    return setup.method in BASE_DTYPES and FULL_BITS.get(_base_dtype(setup), 0) < FULL_BITS["bf16"]


def _dequantized_bytes(setup: TrainingSetup) -> Range:
    """Return the bytes in 16 bits of the matrix of a quantized base that is computed with: no more than one at a time.

    Usually the largest of a layer, at most that and the output layer's, where it is quantized, too; none where a kernel
    computes with the quantized weights. Source: bitsandbytes, MatMul4Bit.
    """
    shape = setup.model.shape
    if not has_quantized_base(setup) or shape.hidden is None:
        return ZERO
    largest = 2.0 * shape.hidden * max(shape.intermediate or 0, shape.expert_width or 0, shape.hidden)
    return Range(low=0.0, mid=largest, high=largest + 2.0 * shape.hidden * (shape.vocab or 0))


def trained_model(setup: TrainingSetup, params: int, forward_pass: ForwardPass | None) -> TrainedModel | None:
    """Return the model as all candidates of a placement share it; None where the frozen base is unknown."""
    workload, count = setup.workload, setup.model.count
    frozen = frozen_base_bytes(setup)
    if frozen is None:
        return None
    return TrainedModel(
        params=params,
        recipe=recipe_of(setup)[1],
        stage=setup.assumptions.get(workload.zero_stage, "training.zero_stage"),
        offload=setup.assumptions.get(workload.offload, "training.offload"),
        frozen_bytes=frozen.mid,
        static_bytes=workload.static_bytes_per_gpu or 0.0,
        layers=setup.model.shape.layers,
        embeddings=count.embeddings / count.total if count else 0.0,
        largest_layer=count.largest_layer if count else 0.0,
        gathered_params=count.total if count else 0.0,
        output_params=(setup.model.shape.hidden or 0) * (setup.model.shape.vocab or 0),
        quantized_copies=0.0 if has_quantized_base(setup) else QUANTIZED_COPIES[workload.precision or "bf16"],
        dequantized=_dequantized_bytes(setup),
        forward_pass=forward_pass,
    )


def compute_need(setup: TrainingSetup, model: TrainedModel) -> TrainingNeed:
    """Return what the fullest GPU needs; weights are sharded over the copies, or over the shard group of HSDP."""
    return training_need(model, setup.deployment.parallelism, setup.workload.shard_group or setup.deployment.copies)


def state_figures(setup: TrainingSetup, model: TrainedModel, need: TrainingNeed) -> StateFigures:
    """Return the model states of the fullest GPU, part by part."""
    name, recipe = recipe_of(setup)
    host = None
    if model.offload != "none":
        host = offloaded_host_bytes(
            model.params, setup.assumptions.get(setup.workload.gpus_per_node, "training.gpus_per_node")
        )
    base, whole = _frozen_base_on_gpu(setup, need), setup.deployment.parallelism.pipeline == 1
    counted = whole and not has_most_adapters(setup)
    return StateFigures(
        recipe=name,
        bytes_per_param=exact(recipe.weights + recipe.gradients + recipe.optimizer, "bytes"),
        weights=exact_or_bound_gib(need.states.weights, is_exact=counted),
        gradients=exact_or_bound_gib(need.states.gradients, is_exact=counted),
        optimizer=exact_or_bound_gib(need.states.optimizer, is_exact=counted),
        frozen_base=range_figure(base, is_exact=whole),
        static=exact_gib(need.static),
        total=range_figure(base + (need.states.total + need.static), is_exact=counted),
        host=estimate_gib(host) if host else None,
    )


def _frozen_base_on_gpu(setup: TrainingSetup, need: TrainingNeed) -> Range:
    """Return the bytes of the frozen base on the fullest GPU."""
    base = frozen_base_bytes(setup)
    return base.times(need.frozen / base.mid) if base is not None and base.mid else ZERO


def total_need(setup: TrainingSetup, need: TrainingNeed) -> Range:
    """Return the bytes that the fullest GPU needs, including the uncertainty of a quantized base."""
    return need.total + _frozen_base_on_gpu(setup, need).spread


def training_memory(setup: TrainingSetup, model: TrainedModel, need: TrainingNeed) -> TrainingMemory:
    """Return what the fullest GPU needs, and whether that fits."""
    usable, deployment, base = setup.gpus.usable_gib, setup.deployment, _frozen_base_on_gpu(setup, need)
    counted = deployment.parallelism.pipeline == 1 and not has_most_adapters(setup)
    return TrainingMemory(
        tensor_parallel=deployment.parallelism.tensor,
        pipeline_parallel=deployment.parallelism.pipeline,
        data_parallel=deployment.copies,
        states=range_figure(base + (need.states.total + need.static), is_exact=counted),
        activations=estimate_gib(need.activations) if model.forward_pass else None,
        buffers=estimate_gib(need.buffers),
        overhead=estimate_gib(need.overhead),
        need=estimate(total_need(setup, need).times(1 / GIB), "GiB", evidence_of("training_memory")),
        fits=need.total.mid <= usable * GIB if usable is not None else None,
    )


def micro_batch_of(setup: TrainingSetup) -> MicroBatch:
    """Return the micro-batch."""
    micro = setup.assumptions.get(setup.workload.micro_batch, "training.micro_batch")
    return MicroBatch(sequence_tokens=setup.sequence_tokens, micro_batch=micro)


def activation_policy(setup: TrainingSetup) -> ActivationPolicy:
    """Return which activations one GPU of the deployment stores.

    Adapters are trained with fused attention, the default of transformers since 4.36 (SDPA).
    """
    workload, parallelism = setup.workload, setup.deployment.parallelism
    formula, recompute = _formula(setup), setup.recompute
    is_adapted, is_given = setup.method in BASE_DTYPES, workload.activation_formula is not None
    if is_adapted and not is_given and formula == "korthikanti" and recompute == "none":
        recompute = "selective"
    return ActivationPolicy(
        formula=formula,
        recompute=recompute,
        tensor=parallelism.tensor,
        sequence_parallel=workload.sequence_parallel,
        pipeline=parallelism.pipeline,
        chunks=workload.pipeline_chunks or 1,
        micro_batches=workload.micro_batches,
        value_bytes=setup.assumptions.get(workload.activation_bytes, "training.activation_bytes"),
        precision=workload.precision or "bf16",
        hidden_state_copies=workload.hidden_state_copies,
        quantized_base=has_quantized_base(setup),
    )


def _formula(setup: TrainingSetup) -> Formula:
    if setup.workload.activation_formula is not None:
        return setup.workload.activation_formula
    if setup.model.shape.mlp == "gated":
        return setup.assumptions.record("training.activation_formula", "modern", "the MLP is gated: a modern layer")
    return setup.assumptions.record("training.activation_formula", "korthikanti", "the MLP is plain: a GPT layer")


def layer_widths(setup: TrainingSetup) -> LayerWidths | None:
    """Return the widths of a layer; None where one that the formula needs is unknown.

    An unknown MLP has the 4h of a GPT; of experts, those that a token uses count.
    """
    shape, workload = setup.model.shape, setup.workload
    simple = workload.hidden_state_copies is not None or _formula(setup) == "zero"
    needed = ("hidden",) if simple else ("hidden", "heads")
    missing = architecture_paths(shape.missing_fields(*needed))
    if setup.assumptions.mark_missing("training.activations", missing):
        return None
    (hidden,) = shape.require("hidden")
    width = (shape.experts_per_token or 0) * (shape.expert_width or 0) + shape.shared_intermediate
    if not shape.experts:
        width = shape.intermediate or 0
    if not width and not simple:
        why = "4 x hidden, a GPT's MLP, for activations"
        width = setup.assumptions.record("architecture.intermediate", 4 * hidden, why)
    kv_width = (shape.kv_heads or 0) * (shape.head_dim or 0)
    return LayerWidths(hidden=hidden, heads=shape.heads or 0, kv_width=kv_width or hidden, intermediate=width)


def forward_pass_of(setup: TrainingSetup) -> ForwardPass | None:
    """Return the forward pass that all candidates of a placement share; None where too little is known.

    Where it is not said how the loss is computed, it is of all logits at once.
    """
    layer, layers, vocab = layer_widths(setup), setup.model.shape.layers, setup.model.shape.vocab
    if layer is None or layers is None:
        return None
    batch, policy, loss = micro_batch_of(setup), activation_policy(setup), setup.workload.cross_entropy
    if vocab and loss is None:
        why = "usual in transformers, PEFT and TRL; the range is from fused to full"
        setup.assumptions.record("training.cross_entropy", "full", why)
    return ForwardPass(
        layer=layer,
        layers=layers,
        batch=batch,
        policy=policy,
        vocab=vocab,
        cross_entropy=loss if vocab and loss is not None else "full",
        cross_entropy_given=loss is not None,
    )


def activation_figures(setup: TrainingSetup) -> ActivationFigures | None:
    """Return the figures of activations that the architecture allows; None where its width is unknown."""
    hidden, layers, vocab = setup.model.shape.hidden, setup.model.shape.layers, setup.model.shape.vocab
    if hidden is None:
        return None
    batch, policy, layer = micro_batch_of(setup), activation_policy(setup), layer_widths(setup)
    logits = logits_bytes(vocab, batch, policy.tensor) if vocab else None
    kept = peak = None
    if layer and layers:
        kept = activation_bytes(layer, layers, batch, policy)
        peak = activation_bytes(layer, layers, batch, replace(policy, recompute="full")) + (logits or 0.0)
    return ActivationFigures(
        formula=policy.formula,
        hidden_states=exact_gib(hidden_state_bytes(hidden, batch, policy.value_bytes)),
        checkpoints=exact_gib(checkpoint_bytes(hidden, layers, batch, policy)) if layers else None,
        layer_working_set=_gib(layer_bytes(layer, batch, policy) if layer else None, policy),
        kept=_gib(kept, policy),
        logits_fp32=exact_gib(logits) if logits is not None else None,
        checkpointed_peak=_gib(peak, policy),
        selective_saving=exact(selective_saving(layer, batch), "share") if layer and layer.heads else None,
    )


def _gib(size: Range | None, policy: ActivationPolicy) -> Figure | None:
    """Return bytes as GiB: exact by the GPT formula or for a given number of hidden states, else an estimate."""
    if size is None:
        return None
    counted = policy.hidden_state_copies is not None or policy.formula == "korthikanti"
    return exact_gib(size.mid) if counted and size.low == size.high else estimate_gib(size)
