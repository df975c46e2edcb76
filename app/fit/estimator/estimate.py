"""The whole answer to a workload: every figure that can be computed, what was assumed, what was left out."""

from decimal import Decimal
from typing import NoReturn

from app.fit.estimator.model import Model, understand, weight_figure
from app.fit.estimator.parallelism import place_serving, place_training
from app.fit.estimator.report import CostFigures, Estimate, InferenceFigures, ParameterFigures, TrainingFigures
from app.fit.estimator.serving import (
    Pace,
    Serving,
    decode_figures,
    decode_pace,
    kv_figures,
    longer_than_made_for,
    memory_figures,
    prefill_figure,
    served_cache,
    served_weights,
    weighed,
)
from app.fit.estimator.training_memory import (
    Training,
    activation_figures,
    need_of,
    passing_of,
    state_figures,
    trainable,
    trained,
    training_memory,
)
from app.fit.estimator.training_time import compute_figures
from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.compute import per_hour, per_job, per_million_tokens, per_month
from app.fit.formulas.quantities import Figure, exact


def serving_cost(gpus: Gpus, count: int, pace: Pace | None) -> CostFigures | None:
    """What serving costs; None without a price."""
    price = gpus.usd_per_gpu_hour
    if price is None:
        return None
    return _cost(count, price, per_million=_per_million(per_hour(count, price), pace) if pace else None)


def _per_million(usd_per_hour: Decimal, pace: Pace) -> Figure:
    """The fastest expected step makes the cheapest tokens."""
    low, mid, high = (
        per_million_tokens(usd_per_hour, decimal(pace.tokens_per_step / step_s))
        for step_s in (pace.likely_s.low, pace.likely_s.mid, pace.likely_s.high)
    )
    return Figure(unit="USD", certainty="estimate", low=low, mid=mid, high=high)


def training_cost(gpus: Gpus, count: int, figures: TrainingFigures, given_hours: Decimal | None) -> CostFigures | None:
    """What training costs; the job is as exact as its GPU-hours. None without a price."""
    price = gpus.usd_per_gpu_hour
    if price is None:
        return None
    hours = figures.compute.gpu_hours
    job = None
    if given_hours is not None:
        job = exact(per_job(given_hours, price), "USD")
    elif hours is not None:
        job = _per_job(hours, price)
    return _cost(count, price, job=job)


def _per_job(hours: Figure, price: Decimal) -> Figure:
    """Scale every end of the hours by the price."""
    ends = {name: getattr(hours, name) for name in ("value", "low", "mid", "high")}
    costs = {name: per_job(decimal(end), price) for name, end in ends.items() if end is not None}
    return Figure(unit="USD", certainty=hours.certainty, **costs)


def _cost(count: int, price: Decimal, *, job: Figure | None = None, per_million: Figure | None = None) -> CostFigures:
    hourly = per_hour(count, price)
    return CostFigures(
        per_hour=exact(hourly, "USD"),
        per_month=exact(per_month(hourly), "USD"),
        per_job=job,
        per_million_tokens=per_million,
    )


def decimal(number: float | Decimal) -> Decimal:
    """The decimal that a number is shown as."""
    return number if isinstance(number, Decimal) else Decimal(repr(number))


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
