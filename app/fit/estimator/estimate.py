"""Estimates a workload: every figure that can be computed, the assumptions, and what was left out."""

from decimal import Decimal
from typing import Any, NoReturn

from app.fit.estimator.model import AS_COUNTED, Model, range_figure, resolve_model
from app.fit.estimator.service_level import (
    SizedService,
    at_service_level,
    rate_range,
    request_seconds,
    service_report,
    size_service,
)
from app.fit.estimator.serving import (
    ServingSetup,
    check_context_length,
    kv_cache_of,
    kv_figures,
    memory_figures,
    weights_range,
    with_context,
    with_weights,
)
from app.fit.estimator.serving_speed import (
    ServingSpeed,
    assume_links,
    first_token_evidence,
    prefill_speed,
    record_lengths,
    refuse_other_kinds,
    speed_of_kind,
    step_figures,
    workload_of_kind,
)
from app.fit.estimator.training_memory import (
    TrainingSetup,
    activation_figures,
    compute_need,
    forward_pass_of,
    has_most_adapters,
    state_figures,
    trainable_params,
    trained_model,
    training_memory,
)
from app.fit.estimator.training_time import compute_figures
from app.fit.estimator.workload import (
    Gpus,
    InferenceWorkload,
    ServiceLevel,
    TrainingWorkload,
    check_experts,
    plan_serving,
    plan_training,
)
from app.fit.formulas.architecture import Architecture, ModelKind
from app.fit.formulas.compute import HOURS_PER_MONTH, per_million_tokens
from app.fit.formulas.quantities import (
    Assumptions,
    Figure,
    InvalidWorkload,
    Range,
    bound,
    estimate,
    exact,
    single_value,
)
from app.fit.results import (
    CostFigures,
    DecodeFigures,
    EncodeFigures,
    Estimate,
    InferenceFigures,
    ParameterFigures,
    TrainingFigures,
    evidence_of,
)


def _serving_cost(setup: ServingSetup, service: SizedService | None, speed: ServingSpeed | None) -> CostFigures | None:
    """Return the cost of serving: of a service that of all replicas of the peak, which run all the time.

    None without a price, and of a service whose load is not borne.
    """
    price = setup.gpus.usd_per_gpu_hour
    if price is None:
        return None
    if service is None:
        hourly = setup.deployment.gpus * price
        return _cost(hourly, per_million_tokens=cost_of_rate(hourly, speed.tokens_per_s) if speed else None)
    if not service.meets_targets or speed is None or speed.first_token_s is None:
        return None
    level, hourly = service.load.level, service.gpus * price
    mean = rate_range(level, request_seconds(level, speed.first_token_s, speed.step_s), peak=False)
    tokens, requests = (
        cost_of_rate(hourly, mean.times(unit), exactly=level.users is None) for unit in (level.output_tokens, 1_000_000)
    )
    return _cost(hourly, per_million_tokens=tokens, per_request=requests)


def cost_of_rate(usd_per_hour: Decimal, rate: Range, *, exactly: bool = False) -> Figure:
    """Return the cost of a million tokens, USD: exact of a given rate, else a range; the highest rate costs least."""
    low, mid, high = (per_million_tokens(usd_per_hour, decimal(speed)) for speed in (rate.high, rate.mid, rate.low))
    if exactly:
        return exact(mid, "USD")
    return Figure(unit="USD", certainty="estimate", low=low, mid=mid, high=high)


def _training_cost(gpus: Gpus, count: int, hours: Figure | None, given_hours: Decimal | None) -> CostFigures | None:
    """Return the cost of training; the job's has the certainty and range of its GPU-hours. None without a price."""
    price, job = gpus.usd_per_gpu_hour, None
    if price is None:
        return None
    if given_hours is not None:
        job = exact(given_hours * price, "USD")
    elif hours is not None:
        ends = {name: getattr(hours, name) for name in ("value", "low", "mid", "high")}
        costs: dict[str, Any] = {name: decimal(end) * price for name, end in ends.items() if end is not None}
        job = Figure(unit="USD", certainty=hours.certainty, **costs)
    return _cost(count * price, per_job=job)


def _cost(usd_per_hour: Decimal, **others: Figure | None) -> CostFigures:
    hour, month = exact(usd_per_hour, "USD"), exact(usd_per_hour * HOURS_PER_MONTH, "USD")
    return CostFigures(per_hour=hour, per_month=month, **{"per_job": None, "per_million_tokens": None} | others)


def decimal(number: float | Decimal) -> Decimal:
    """Convert a number to the decimal of its shortest representation, as it is printed."""
    return number if isinstance(number, Decimal) else Decimal(repr(number))


def serving_setup(
    shape: Architecture, workload: InferenceWorkload, gpus: Gpus, assumptions: Assumptions
) -> ServingSetup:
    """Return a serving workload with its model, deployment and weights; raises InvalidWorkload for a contradiction."""
    model = resolve_model(shape, assumptions)
    workload = workload_of_kind(model.shape, workload, assumptions)
    check_experts(workload, model.shape.experts)
    deployment = plan_serving(workload, gpus, model.shape, assumptions)
    return with_weights(
        ServingSetup(
            model=model,
            workload=with_context(workload, model.shape, assumptions),
            gpus=assume_links(gpus, deployment.parallelism, assumptions),
            deployment=deployment,
            assumptions=assumptions,
        )
    )


def estimate_serving(
    shape: Architecture,
    workload: InferenceWorkload,
    gpus: Gpus,
    assumptions: Assumptions,
    level: ServiceLevel | None = None,
) -> Estimate:
    """Estimate a served model; raise InvalidWorkload where a requested figure, or every figure, cannot be computed.

    With a service level the figures are those of the replicas that it takes, at the peak of its load.
    """
    if level is not None:
        workload, level = at_service_level(workload, level, assumptions)
    setup = serving_setup(shape, workload, gpus, assumptions)
    model = setup.model
    check_context_length(setup, is_service=level is not None)
    weights, cache = weights_range(setup), kv_cache_of(setup)
    generates = model.shape.kind == "decoder"
    prefill = service = None
    if generates and (gpus.bandwidth_gb_per_s is not None or gpus.peak_tflops is not None):
        record_lengths(setup)
    if generates and workload.prompt_tokens is not None:
        unknown = {"gpus.peak_tflops": gpus.peak_tflops, "architecture.params": model.count}
        missing = tuple(name for name, value in unknown.items() if value is None)
        assumptions.mark_missing("inference.prefill", missing)
    if level is not None:
        refuse_other_kinds(model.shape, "serving")
        if weights is None or cache is None:
            raise_missing("serving", "inference", assumptions)
        service = size_service(setup, level, weights, cache)
        setup = service.setup
    if generates:
        prefill = prefill_speed(setup, weights)
    speed = speed_of_kind(setup, weights, cache)
    first = speed.first_token_s if speed else None
    figures = InferenceFigures(
        weights=range_figure(weights) if weights else None,
        kv_cache=kv_figures(setup, cache),
        memory_per_gpu=memory_figures(setup, weights, cache) if weights else None,
        decode=step_figures(speed, DecodeFigures) if speed and generates else None,
        prefill=estimate(prefill, "s", evidence_of("ttft")) if prefill else None,
        ttft=estimate(first.times(1e3), "ms", first_token_evidence(speed.departures)) if speed and first else None,
        encode=step_figures(speed, EncodeFigures) if speed and not generates else None,
    )
    _check_serving(workload, figures, assumptions, kind=model.shape.kind)
    return Estimate(
        architecture=model.shape,
        parameters=parameter_figures(model),
        inference=figures,
        serving=service_report(service, weights, cache) if service is not None and weights is not None else None,
        cost=_serving_cost(setup, service, speed),
        weights_type=setup.weights.type if setup.weights is not None else None,
        assumptions=assumptions.recorded,
        left_out=assumptions.left_out,
    )


def _check_serving(
    workload: InferenceWorkload, figures: InferenceFigures, assumptions: Assumptions, *, kind: ModelKind
) -> None:
    """Raise InvalidWorkload where a figure that the workload asks for by a field, or every figure, is missing."""
    if figures.kv_cache is None and kind != "encoder" and workload.context_tokens is not None:
        raise_missing("inference.context_tokens", "inference.kv_cache", assumptions)
    if figures.kv_cache is None and workload.kv_budget_gib is not None:
        raise_missing("inference.kv_budget_gib", "inference.kv_cache", assumptions)
    asks_for_prefill = kind == "decoder" and workload.prompt_tokens is not None and workload.output_tokens is None
    if figures.prefill is None and asks_for_prefill:
        raise_missing("inference.prompt_tokens", "inference.prefill", assumptions)
    if not any((figures.weights, figures.kv_cache, figures.decode, figures.prefill)):
        raise_missing("inference", "inference", assumptions)


def raise_missing(field: str, figure: str, assumptions: Assumptions) -> NoReturn:
    """Raise InvalidWorkload for a field, naming the fields that the figures it asks for need."""
    omitted = [left_out for left_out in assumptions.left_out if left_out.figure.startswith(figure)]
    missing = dict.fromkeys(name for left_out in omitted for name in left_out.missing)
    detail = f"cannot be answered without {', '.join(missing)}" if missing else "asks for nothing that can be answered"
    raise InvalidWorkload(field, detail)


def estimate_training(shape: Architecture, job: TrainingWorkload, gpus: Gpus, assumptions: Assumptions) -> Estimate:
    """Estimate a trained model; raise InvalidWorkload where a requested figure, or every figure, cannot be computed."""
    refuse_other_kinds(shape, "training")
    model = resolve_model(shape, assumptions)
    deployment = plan_training(job, gpus, model.shape, assumptions)
    setup = TrainingSetup(model=model, workload=job, gpus=gpus, deployment=deployment, assumptions=assumptions)
    params = trainable_params(setup)
    trained = trained_model(setup, params, forward_pass_of(setup)) if params is not None else None
    need = compute_need(setup, trained) if trained else None
    counted = bound if has_most_adapters(setup) else exact
    figures = TrainingFigures(
        trainable_params=counted(params, "parameters") if params is not None else None,
        states=state_figures(setup, trained, need) if trained and need else None,
        activations=activation_figures(setup),
        memory_per_gpu=training_memory(setup, trained, need) if trained and need else None,
        compute=compute_figures(setup),
    )
    _check_training(job, figures, assumptions)
    return Estimate(
        architecture=model.shape,
        parameters=parameter_figures(model),
        training=figures,
        cost=_training_cost(gpus, deployment.gpus, figures.compute.gpu_hours, job.gpu_hours),
        assumptions=assumptions.recorded,
        left_out=assumptions.left_out,
    )


def _check_training(job: TrainingWorkload, figures: TrainingFigures, assumptions: Assumptions) -> None:
    compute = figures.compute
    computed = any(getattr(compute, name) for name in ("model_flops", "gpu_hours", "iteration", "hfu_over_mfu"))
    if job.tokens is not None and not computed:
        raise_missing("training.tokens", "training.compute", assumptions)
    if job.global_batch is not None and compute.iteration_flops is None:
        raise_missing("training.global_batch", "training.compute", assumptions)
    if not any((figures.trainable_params, figures.states, figures.activations, computed)):
        raise_missing("training", "training", assumptions)


def parameter_figures(model: Model) -> ParameterFigures | None:
    """Return the model's parameters; None where they are unknown."""
    count = model.count
    if count is None:
        return None
    if model.counted_within(count.total) == AS_COUNTED:
        return ParameterFigures(total=exact(count.total, "parameters"), active=exact(count.active, "parameters"))
    evidence = evidence_of("standard_decoder")
    total, active = (
        estimate(single_value(number).within(model.counted_within(number)), "parameters", evidence)
        for number in (count.total, count.active)
    )
    return ParameterFigures(total=total, active=active)
