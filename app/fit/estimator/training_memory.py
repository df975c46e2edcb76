"""From a workload that is trained to the memory it takes: model states, and what the fullest GPU needs."""

from dataclasses import dataclass, replace

from app.fit.estimator.model import Model, weight_figure
from app.fit.estimator.parallelism import ALONE, Placing
from app.fit.estimator.report import StateFigures, TrainingMemory
from app.fit.estimator.weights import stored_in
from app.fit.estimator.workload import Gpus, TrainingWorkload
from app.fit.formulas.adapters import lora_matrices, lora_params, missing_for_modules
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.optimizer import RECIPES, Recipe, offloaded_host_bytes
from app.fit.formulas.quantities import GIB, NOTHING, Range, estimate_gib, exact, exact_gib, held_gib
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
