"""The whole answer to a workload: every figure that can be computed, what was assumed, what was left out."""

from typing import NoReturn

from app.fit.estimator.costing import serving_cost, training_cost
from app.fit.estimator.model import Model, understand, weight_figure
from app.fit.estimator.parallelism import place_serving, place_training
from app.fit.estimator.report import Estimate, InferenceFigures, ParameterFigures, TrainingFigures
from app.fit.estimator.serving import (
    Serving,
    kv_figures,
    longer_than_made_for,
    memory_figures,
    served_cache,
    served_weights,
    weighed,
)
from app.fit.estimator.serving_speed import decode_figures, decode_pace, prefill_figure
from app.fit.estimator.training_activations import activation_figures, passing_of
from app.fit.estimator.training_memory import Training, need_of, state_figures, trainable, trained, training_memory
from app.fit.estimator.training_time import compute_figures
from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.quantities import exact


def answer_serving(shape: Architecture, load: InferenceWorkload, gpus: Gpus, ledger: Ledger) -> Estimate:
    """Compute all that can be said of a model that is served; raises Impossible where that is nothing."""
    model = understand(shape, ledger)
    placing = place_serving(load, gpus, model.shape.heads, ledger)
    asked = weighed(Serving(model=model, load=load, gpus=gpus, placing=placing, ledger=ledger))
    longer_than_made_for(asked)
    weights, cache = served_weights(asked), served_cache(asked)
    pace = decode_pace(asked, weights, cache)
    figures = InferenceFigures(
        weights=weight_figure(weights) if weights else None,
        kv_cache=kv_figures(asked, cache),
        memory_per_gpu=memory_figures(asked, weights, cache) if weights else None,
        decode=decode_figures(pace) if pace else None,
        prefill=prefill_figure(asked),
    )
    _check_serving(load, figures, ledger)
    return Estimate(
        architecture=model.shape,
        parameters=parameter_figures(model),
        inference=figures,
        cost=serving_cost(gpus, placing.gpus, pace),
        weights_type=asked.stored.type if asked.stored is not None else None,
        assumptions=ledger.assumptions,
        left_out=ledger.left_out,
    )


def _check_serving(load: InferenceWorkload, figures: InferenceFigures, ledger: Ledger) -> None:
    """Refuse a question of which the part that was asked for by name, or all of it, cannot be answered."""
    nothing = not any((figures.weights, figures.kv_cache, figures.decode, figures.prefill))
    context = load.context_tokens is not None and figures.kv_cache is None
    for field, figure, refused in (
        ("inference.context_tokens", "inference.kv_cache", context),
        ("inference.kv_budget_gib", "inference.kv_cache", load.kv_budget_gib is not None and figures.kv_cache is None),
        ("inference.prompt_tokens", "inference.prefill", load.prompt_tokens is not None and figures.prefill is None),
        ("inference", "inference", nothing),
    ):
        if refused:
            refuse(field, figure, ledger)


def refuse(field: str, figure: str, ledger: Ledger) -> NoReturn:
    """Refuse a field, naming what the figures that it asks for miss."""
    gaps = [gap for gap in ledger.left_out if gap.figure.startswith(figure)]
    missing = dict.fromkeys(name for gap in gaps for name in gap.missing)
    said = f"cannot be answered without {', '.join(missing)}" if missing else "asks for nothing that can be answered"
    raise Impossible(field, said)


def answer_training(shape: Architecture, job: TrainingWorkload, gpus: Gpus, ledger: Ledger) -> Estimate:
    """Compute all that can be said of a model that is trained; raises Impossible where that is nothing."""
    model = understand(shape, ledger)
    placing = place_training(job, gpus, model.shape.heads, ledger)
    asked = Training(model=model, job=job, gpus=gpus, placing=placing, ledger=ledger)
    figures = _training_figures(asked)
    _check_training(job, figures, ledger)
    return Estimate(
        architecture=model.shape,
        parameters=parameter_figures(model),
        training=figures,
        cost=training_cost(gpus, placing.gpus, figures, job.gpu_hours),
        assumptions=ledger.assumptions,
        left_out=ledger.left_out,
    )


def _training_figures(asked: Training) -> TrainingFigures:
    params = trainable(asked)
    job = trained(asked, params, passing_of(asked)) if params is not None else None
    need = need_of(asked, job) if job else None
    return TrainingFigures(
        trainable_params=exact(params, "parameters") if params is not None else None,
        states=state_figures(asked, job, need) if job and need else None,
        activations=activation_figures(asked),
        memory_per_gpu=training_memory(asked, job, need) if job and need else None,
        compute=compute_figures(asked),
    )


def _check_training(job: TrainingWorkload, figures: TrainingFigures, ledger: Ledger) -> None:
    compute = figures.compute
    computed = any(getattr(compute, name) for name in ("model_flops", "gpu_hours", "iteration", "hfu_over_mfu"))
    if job.tokens is not None and not computed:
        refuse("training.tokens", "training.compute", ledger)
    if job.global_batch is not None and compute.iteration_flops is None:
        refuse("training.global_batch", "training.compute", ledger)
    if not any((figures.trainable_params, figures.states, figures.activations, computed)):
        refuse("training", "training", ledger)


def parameter_figures(model: Model) -> ParameterFigures | None:
    """The model's parameters; None where they are not known."""
    count = model.count
    if count is None:
        return None
    return ParameterFigures(total=exact(count.total, "parameters"), active=exact(count.active, "parameters"))
