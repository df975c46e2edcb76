"""Answers the bodies of POST /fit and POST /estimate: one query of the catalog, then arithmetic.

A body has the fields that app.fit names at the paths of the same names, and the parameters of a search at those of
PATHS.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from math import inf
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any

import orjson

from app.catalog.names import as_written
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import PEAK_DTYPES, machines_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.lookups import ModelsByKey, get_gpu, get_release_row, place_regions
from app.catalog.queries.params import DatedSelection, FitSearch, PageParams, SizeSelection, check_days
from app.catalog.queries.sizes import explain_no_price, normalize
from app.catalog.queries.snapshot import Catalog
from app.db.statements import Reader
from app.errors import BadCursor, BadQuery, BadWorkload, NotFound, UnknownInBody
from app.fit.estimator.estimate import estimate_serving, estimate_training, parameter_figures
from app.fit.estimator.model import build_architecture, resolve_model
from app.fit.estimator.workload import (
    Gpus,
    InferenceWorkload,
    ServiceLevel,
    Speculation,
    TrainingWorkload,
    requested_gpus,
)
from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.compute import USUAL_NETWORK_GBPS
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.hf_quantization import Checkpoint, may_have, read_checkpoint
from app.fit.formulas.optimizer import AdaptedMatrix
from app.fit.formulas.quantities import GIB, Assumption, Assumptions, InvalidWorkload
from app.fit.formulas.quantization import FP8_TENSORS, MXFP4_EXPERTS, ReleasedWeights, fp8_blocks
from app.fit.placement.fixes import FieldChange, FixFinder
from app.fit.placement.jobs import ServingJob
from app.fit.placement.machine import MIN_CAPABILITY, Machine
from app.fit.placement.option import (
    PlacementOption,
    cost_figures,
    explain,
    per_gpu_memory,
    service_figures,
    speed_figures,
)
from app.fit.placement.prepare import Constraints, MemoryUnknown, PlacementRequest, Pricing, Workload, prepare
from app.fit.placement.ranking import rank
from app.fit.results import Estimate
from app.fit.verdict import MAX_REJECTED, NEAREST_MISSES, Vm
from app.schemas.fit_request import EstimateIn, FitIn, HardwareIn, InferenceIn, ModelIn, ResourcesIn, TrainingIn
from app.schemas.fit_response import (
    EstimateOut,
    FitAnswerOut,
    FixOut,
    MissOut,
    ParallelismOut,
    PlacedOut,
    WorkloadOut,
)
from app.services.ranked import paginate, to_gpus, to_vm
from app.services.resource_fit import (
    nearest_of_each,
    plan_resource_fit,
    shown_of,
    to_cost_out,
    to_miss,
)


def resolve_architecture(
    spec: ModelIn, find: Callable[[str], Mapping[str, Any]], assumptions: Assumptions
) -> Architecture:
    """Return the architecture of a model; `find` gets a preset by name.

    Raises UnknownInBody for an unknown preset, InvalidWorkload for a configuration or fields that make no model.
    """
    if spec.model is not None:
        try:
            row = find(spec.model)
        except NotFound as unknown:
            hint = "" if unknown.suggestions else " A body of the API may give architecture or config instead."
            raise UnknownInBody("model", f"{unknown}{hint}") from None
        shape = to_architecture(row)
        if (why := _left_out_of(row)) is not None:
            assumptions.record("model", row["params"], why)
    elif spec.config is not None:
        shape = read_config(spec.config, assumptions)
    else:
        stated = spec.architecture.model_dump(exclude_none=True) if spec.architecture is not None else {}
        shape = build_architecture(stated, assumptions, attention=stated.pop("attention", None))
    return shape if spec.safetensors is None else _with_checkpoint(shape, read_checkpoint(spec.safetensors))


def _with_checkpoint(shape: Architecture, checkpoint: Checkpoint) -> Architecture:
    """Return the architecture with the bytes of a checkpoint; its parameters and type where nothing else says them.

    Raises InvalidWorkload where the bytes are those of another model, or of a part of it.
    """
    count = resolve_model(shape, Assumptions()).count
    if count is not None and not may_have(checkpoint.size, count.total):
        detail = (
            f"{checkpoint.size:,} bytes are not from 1 to 64 bits for each of the model's {count.total:,} parameters"
        )
        raise InvalidWorkload("safetensors", detail)
    countable = shape.params is not None or not (shape.unknown_type or missing_for_count(shape))
    stated = shape.released
    released = ReleasedWeights(
        dtype=stated.dtype if stated is not None else checkpoint.dtype,
        source="safetensors",
        quantization=stated.quantization if stated is not None else None,
        size=checkpoint.size,
        why=f"the checkpoint's {checkpoint.size} bytes, by {checkpoint.source}",
    )
    return replace(shape, released=released, params=shape.params if countable else checkpoint.params)


def to_architecture(row: Mapping[str, Any]) -> Architecture:
    """Map a preset's row to an Architecture; missing columns are unknown."""
    if row.get("config"):
        # A preset whose layers differ has its configuration: an object, or its JSON text as in the table.
        shape, _ = _read_text(_config_of(row))
        stored = None if row.get("released_as") else shape.released
        released = replace(stored, source="preset") if stored is not None else _released(row)
        return replace(shape, released=released, max_positions=row.get("max_context_tokens"))
    names = {field.name for field in fields(Architecture)}
    stated = {name: value for name, value in row.items() if name in names and value is not None}
    if not stated.get("experts"):
        stated = {name: value for name, value in stated.items() if "expert" not in name and not name.startswith("moe_")}
    shared = (row.get("shared_experts") or 0) * (row.get("moe_intermediate") or 0)
    own = {"max_positions": row.get("max_context_tokens"), "released": _released(row)}
    return Architecture(**stated | own | ({"shared_intermediate": shared} if shared else {}))


def _config_of(row: Mapping[str, Any]) -> str:
    config = row["config"]
    return config if isinstance(config, str) else orjson.dumps(config).decode()


@lru_cache(maxsize=128)
def _read_text(config: str) -> tuple[Architecture, tuple[Assumption, ...]]:
    assumptions = Assumptions()
    return read_config(orjson.loads(config), assumptions), assumptions.recorded


def _left_out_of(row: Mapping[str, Any]) -> str | None:
    """Return why a preset has other parameters than its checkpoint, or a part of the model alone; None if neither."""
    if row.get("params_note"):
        return f"parameters that are counted, of {row['published_params']:,} published: {row['params_note']}"
    read = _read_text(_config_of(row))[1] if row.get("config") else ()
    return next((note.why for note in read if note.field == "config.text_config"), None)


def _released(row: Mapping[str, Any]) -> ReleasedWeights | None:
    """Return how a preset's weights are stored, by the type its model card names; None where it names none."""
    dtype, block = row.get("dtype"), row.get("fp8_block")
    if dtype is None:
        return None
    if (suffix := row.get("released_as")) is not None:
        return ReleasedWeights(dtype=dtype, source="preset", why=f"the name ends in {suffix}")
    stored = {"mxfp4": MXFP4_EXPERTS, "fp8": fp8_blocks(block) if block else FP8_TENSORS}.get(dtype)
    why = "the type it is released in"
    if stored is not None:
        what = "routed experts" if dtype == "mxfp4" else "the matrices of its layers"
        why = f"{why}: {what}, and all else in 16 bits"
    return ReleasedWeights(dtype=dtype, source="preset", quantization=stored, why=why)


MIN_USABLE_SHARE = 0.91
"""Share of the marketed GPU memory counted where no source gives the usable part: the least of any GPU in the catalog
(a T4 with ECC, 14.56 of 16 GiB), so that a size reported to fit does."""


_MACHINE_COLUMNS = (
    *("gpu_count_numerator", "gpu_count_denominator", "series_gpu_count_numerator", "series_gpu_count_denominator"),
    *("usable_memory_gib", "marketed_memory_gib", "memory_bandwidth_gb_per_s", "compute_capability", "domain_gpus"),
    *("rack_vms", "interconnect_gb_per_s", "infiniband", "infiniband_gbps", "fabric", "network_mbps", "memory_gib"),
    *("gpu_id", "local_disk_gib", "vcpus", "described", *(f"{kind}_tflops" for kind in PEAK_DTYPES)),
)
_machine_facts = itemgetter(*_MACHINE_COLUMNS)


def to_machine(row: Mapping[str, Any]) -> Machine:
    """Map a row to what a size offers a language model; a fraction of a GPU has that fraction of its figures."""
    return _to_machine(_machine_facts(row))


@lru_cache(maxsize=4096)
def _to_machine(facts: tuple[Any, ...]) -> Machine:
    """Return the machine with these facts. Kept, as the rows for other regions and prices have the same."""
    row = dict(zip(_MACHINE_COLUMNS, facts, strict=True))
    gpus = to_gpus(row["gpu_count_numerator"], row["gpu_count_denominator"])
    of_series = (
        to_gpus(row["series_gpu_count_numerator"], row["series_gpu_count_denominator"]) if gpus is None else None
    )
    gpus = of_series if gpus is None else gpus
    part = float(gpus) if gpus is not None and gpus < 1 else 1.0
    usable: float | None = row["usable_memory_gib"]
    if usable is None:
        usable = _scaled(row["marketed_memory_gib"], MIN_USABLE_SHARE)
    return Machine(
        gpus=gpus,
        gpu_id=row["gpu_id"] if part == 1 else None,
        usable_bytes=_scaled(usable, GIB * part),
        usable_assumed=row["usable_memory_gib"] is None,
        bandwidth=_scaled(row["memory_bandwidth_gb_per_s"], 1e9 * part),
        peaks={kind: peak * 1e12 * part for kind in PEAK_DTYPES if (peak := row[f"{kind}_tflops"]) is not None},
        capability=row["compute_capability"],
        domain_gpus=row["domain_gpus"],
        domain_vms=row["rack_vms"] or 1,
        link_gb_per_s=row["interconnect_gb_per_s"],
        infiniband=row["infiniband"],
        network_gbps=_scaled(_network_gbps(row), 1 / max(1.0, float(gpus or 1))),
        memory_bytes=_scaled(row["memory_gib"], GIB),
        disk_bytes=_scaled(row["local_disk_gib"], GIB),
        vcpus=row["vcpus"],
        of_series=of_series is not None or not row["described"],
    )


_FABRICS_OF_THE_NETWORK = {"EFA", "GPUDirect-TCPX", "GPUDirect-TCPXO"}
"""Fabrics that are the network of the VM; InfiniBand and RoCE have network cards and a rate of their own."""


def _network_gbps(row: Mapping[str, Any]) -> float | None:
    """Return the speed of what joins a VM to others, Gbit/s: of its fabric, else of its network; None is unknown."""
    if row["infiniband_gbps"] is not None:
        return float(row["infiniband_gbps"])
    if row["infiniband"] and row["fabric"] not in _FABRICS_OF_THE_NETWORK:
        return None
    return _scaled(row["network_mbps"], 1e-3)


def _scaled(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None else None


USABLE_SHARE = 0.985
"""Share of the marketed GPU memory assumed usable where it is not given: A100 80GB 0.99, H100 80GB 0.99."""

MAX_GPUS_PER_SERVER = 8
"""A scale-up domain with more GPUs than this spans the servers of a rack."""


def _first_known(explicit: float | None, looked_up: float | None) -> float | None:
    return explicit if explicit is not None else looked_up


def _described_gib(hardware: HardwareIn, gpu: Mapping[str, Any], assumptions: Assumptions) -> float:
    """Return the memory of one GPU in GiB; infinite where only the partition is checked.

    The usable part is that of the catalog unless the machine says that its GPU has more or less memory.
    """
    if not hardware.memory_known:
        assumptions.record("hardware.usable_gib", None, "no memory is given: only the partition is checked")
        return inf
    if hardware.usable_gib is not None:
        if hardware.memory_gib is not None and hardware.usable_gib > hardware.memory_gib:
            detail = f"{hardware.usable_gib:g} is more than hardware.memory_gib, {hardware.memory_gib:g}"
            raise InvalidWorkload("hardware.usable_gib", detail)
        return hardware.usable_gib
    marketed = _first_known(hardware.memory_gib, gpu.get("memory_gib")) or 0.0
    if marketed == gpu.get("memory_gib") and gpu["usable_memory_gib"] is not None:
        return float(gpu["usable_memory_gib"])
    return assumptions.record("hardware.usable_gib", marketed * USABLE_SHARE, "98.5 % of the marketed memory")


PATHS = {
    "region": "constraints.regions",
    "series": "constraints.series",
    "name": "constraints.name",
    "gpu": "constraints.gpu",
    "gpu_vendor": "constraints.gpu_vendor",
    "available_in": "constraints.available_in",
    "provider": "constraints.provider",
    "country": "constraints.country",
    "continent": "constraints.continent",
    "os": "pricing.os",
    "currency": "pricing.currency",
    "as_of": "pricing.as_of",
    "known_at": "pricing.known_at",
}
"""Where a body has the parameters of a query: those of a search are read from there, and errors name that place."""


def search_params(body: FitIn, search: type[SizeSelection] = FitSearch) -> dict[str, Any]:
    """Return the parameters of a catalog search that a body has, by name; regions as they are written there."""
    params = {name: attrgetter(path)(body) for name, path in PATHS.items() if name in search.model_fields}
    return params | {name: tuple(map(as_written, params[name])) for name in ("region", "available_in")}


def to_body_error(error: BadQuery | BadWorkload | InvalidWorkload) -> BadWorkload:
    """Return the error about a field, and about its value if known, as one about the path in the body."""
    detail = error.allowed if isinstance(error, BadQuery) else error.detail
    value = None if isinstance(error, InvalidWorkload) else error.value
    kind = UnknownInBody if isinstance(error, BadQuery | UnknownInBody) else BadWorkload
    return kind(PATHS.get(error.field, error.field), detail, value)


def to_patch(changes: Iterable[FieldChange]) -> dict[str, dict[str, Any]]:
    """Return what changes do to a body, as a JSON Merge Patch (RFC 7396); amounts of money become plain numbers."""
    patch: dict[str, dict[str, Any]] = {}
    for change in changes:
        value = change.value
        patch.setdefault(change.part, {})[change.field] = float(value) if isinstance(value, Decimal) else value
    return patch


MAX_NODES_OF_A_SERVICE = 100
"""The most VMs of a service where the request does not say: its load decides how many there are."""

_OF_A_PAGE: Mapping[str, Any] = {"limit": True, "cursor": True, "pricing": {"currency"}}
"""The fields of a body that choose a page of the answer, or how it is shown; all others identify the list."""


def estimate_body(body: EstimateIn, models: ModelsByKey) -> EstimateOut:
    """Answer a body; raises BadWorkload naming the path in the body that is wrong or missing."""
    return EstimateOut.model_validate(estimate(body, models))


def estimate(body: EstimateIn, models: ModelsByKey) -> Estimate:
    """Compute the figures of a body, whose model is looked up in `models` where it names one; raises BadWorkload."""
    assumptions = Assumptions()
    try:
        architecture = resolve_architecture(body, partial(get_release_row, models), assumptions)
        workload, gpus = to_workload(body), to_estimated_gpus(body)
        if isinstance(workload, InferenceWorkload):
            level = ServiceLevel(**body.serving.model_dump()) if body.serving is not None else None
            return estimate_serving(architecture, workload, gpus, assumptions, level)
        return estimate_training(architecture, workload, gpus, assumptions)
    except (BadWorkload, InvalidWorkload) as error:
        raise to_body_error(error) from None


def to_workload(body: EstimateIn) -> Workload:
    """Convert how a model is served, which a service level may leave out, or trained, on the engine of the GPUs."""
    inference = body.inference or InferenceIn() if body.serving is not None else body.inference
    workload = to_usage(inference, body.training)
    engine = body.gpus.engine
    return replace(workload, engine=engine) if engine and isinstance(workload, InferenceWorkload) else workload


def to_estimated_gpus(body: EstimateIn) -> Gpus:
    """Convert the GPUs of an estimate."""
    return Gpus(**body.gpus.model_dump(exclude={"engine"}))


def to_usage(inference: InferenceIn | None, training: TrainingIn | None) -> Workload:
    """Convert the part that says how a model is served, or else trained."""
    if inference is not None:
        served = inference.model_dump(exclude={"speculative"})
        speculative = inference.speculative
        return InferenceWorkload(
            **served, speculative=Speculation(**speculative.model_dump()) if speculative is not None else None
        )
    fields = training.model_dump() if training is not None else {}
    matrices = fields.pop("lora_matrices", None)
    return TrainingWorkload(
        **fields, lora_matrices=tuple(AdaptedMatrix(**matrix) for matrix in matrices) if matrices is not None else None
    )


def plan_fit(
    catalog: Catalog, body: FitIn, *, most_of_reason: int | None = None, among: Mapping[str, Any] = MappingProxyType({})
) -> FitAnswerOut:
    """Answer a body; raises BadWorkload naming the path in the body that is wrong or missing, BadCursor and CursorGone.

    With `most_of_reason`, `rejected` has at most that many sizes for each reason, the nearest of them with its fixes.
    A model is placed `among` the sizes that these filters leave, which no body has.
    """
    try:
        if body.resources is None:
            return _place_model(catalog, body, most_of_reason, among)
        return plan_resource_fit(
            catalog,
            _fit_search(body, body.resources),
            purchases=body.pricing.purchases,
            verified_only=body.constraints.verified_only,
            rejected="rejected" in body.include,
            most_of_reason=most_of_reason,
        )
    except BadCursor:
        raise
    except (BadQuery, BadWorkload, InvalidWorkload) as error:
        raise to_body_error(error) from None


def _request_key(body: FitIn, today: date) -> str:
    """Return what the cursors of a request are for; of a model's files, which may have megabytes, only the digest."""
    files = {"config": body.config, "safetensors": body.safetensors}
    digests = {name: {"digest": _digest(file)} for name, file in files.items() if file is not None}
    return f"{body.model_copy(update=digests).model_dump_json(exclude=_OF_A_PAGE)} {today}"


def _digest(file: Mapping[str, Any]) -> str:
    try:
        text = orjson.dumps(file)
    except TypeError:  # an integer of more than 64 bits
        text = "".join(json.JSONEncoder().iterencode(file)).encode()
    return hashlib.sha256(text).hexdigest()


def _fit_search(body: FitIn, resources: ResourcesIn) -> FitSearch:
    constraints, pricing = body.constraints, body.pricing
    statuses = {"preview": constraints.allow_preview, "retiring": constraints.allow_retiring}
    return FitSearch(
        **search_params(body),
        purchase=pricing.purchases[0],
        **resources.model_dump(exclude_none=True),
        status=("current", *(status for status, allowed in statuses.items() if allowed)),
        max_nodes=constraints.max_nodes,
        hours=pricing.hours,
        hours_per_month=pricing.hours_per_month,
        budget_usd_per_month=constraints.budget_usd_per_month,
        sort=body.order,
        limit=body.limit,
        cursor=body.cursor,
    )


Sizes = list[tuple[Vm, Machine]]


def _place_model(catalog: Catalog, body: FitIn, most_of_reason: int | None, among: Mapping[str, Any]) -> FitAnswerOut:
    """Place a model on the selected sizes or one described machine: the best options, and the nearest misses or all.

    With `most_of_reason` it is that many misses of each reason, and fixes are found for the nearest of each and of all:
    finding them is most of the work of an answer, and sizes that fail for one reason mostly have the same fixes.
    """
    scope = to_scope(body).model_copy(update=among)
    check_days(scope, catalog.today)
    scope = place_regions(scope, catalog.snapshot.regions)
    rate = find_exchange_rate(catalog, body.pricing.currency, scope.as_of or catalog.today)
    assumptions = Assumptions()
    try:
        request = to_request(body, catalog.snapshot.models, assumptions, catalog.today)
        request = request.with_change("constraints", "regions", scope.region)
        prepared = prepare(request, assumptions)
        _check_job_length(body, request.workload)
        if body.hardware is not None:
            sizes = [_described_machine(catalog, body.hardware, request, assumptions)]
        else:
            selection, purchases = normalize(scope, catalog.snapshot), request.pricing.purchases
            rules, computed = catalog.snapshot.rules, bool(catalog.snapshot.formulas)
            query = machines_query(selection, purchases, today=catalog.today, rules=rules, computed=computed)
            sizes = catalog.keep_list(query, to_sizes)
    except MemoryUnknown:
        raise BadWorkload("hardware", "needs gpu, usable_gib or memory_gib") from None
    options, rejections = rank(sizes, prepared, body.order)
    page_params = PageParams(limit=body.limit, cursor=body.cursor)
    shown, next_cursor = paginate(catalog, options, page_params, _request_key(body, catalog.today))
    # A described machine has no price anyway.
    is_priced = body.hardware or body.cursor or any(option.usd_per_hour is not None for option in shown)
    no_price = None if is_priced else explain_no_price(catalog, scope)

    codes = [rejection.failures[0].code for rejection in rejections]
    rejected = nearest_of_each(rejections, codes, most_of_reason)[:MAX_REJECTED] if "rejected" in body.include else ()
    nearest = rejections[:NEAREST_MISSES]
    listed = {miss.vm.name: miss for miss in (*nearest, *rejected)}
    fixed = rejected if most_of_reason is None else nearest_of_each(rejections, codes, 1)
    with_fixes = {miss.vm.name for miss in (*nearest, *fixed)}
    fixer = FixFinder(prepared)
    misses: dict[str, MissOut] = {}
    for vm, machine in sizes:
        if (rejection := listed.get(vm.name)) is not None:
            fixes = fixer.find_fixes(vm, machine, rejection) if vm.name in with_fixes else ()
            shown_fixes = [FixOut(text=fix.text, patch=to_patch(fix.changes)) for fix in fixes]
            misses[vm.name] = to_miss(rejection, shown_fixes)
    job = prepared.job
    weights = job.serving.weights if isinstance(job, ServingJob) else None
    return FitAnswerOut(
        fits=bool(options),
        items=[_option(option, rate) for option in shown],
        next_cursor=next_cursor,
        total=len(options),
        rejected=[misses[miss.vm.name] for miss in rejected],
        rejected_total=len(rejections),
        rejection_summary=dict(sorted(Counter(codes).items())),
        nearest_misses=[misses[miss.vm.name] for miss in nearest],
        assumptions=assumptions.recorded if "assumptions" in body.include else [],
        exchange_rate=rate,
        no_price=no_price,
        weights_type=weights.type if weights is not None else None,
        workload=WorkloadOut(architecture=job.model.shape, parameters=parameter_figures(job.model))
        if "workload" in body.include
        else None,
    )


def to_scope(body: FitIn) -> DatedSelection:
    """Convert which sizes are searched, and whose prices are used."""
    return DatedSelection(**search_params(body, DatedSelection), purchase=body.pricing.purchases[0])


def to_request(body: FitIn, models: ModelsByKey, assumptions: Assumptions, today: date) -> PlacementRequest:
    """Convert a body about a model; raises UnknownInBody for an unknown one, InvalidWorkload for a wrong field."""
    constraints = body.constraints.model_dump(exclude=set(SizeSelection.model_fields))
    inference = body.inference
    if body.serving is not None:
        inference = inference or InferenceIn()
        if "max_nodes" not in body.constraints.model_fields_set:
            constraints["max_nodes"] = MAX_NODES_OF_A_SERVICE
    return PlacementRequest(
        architecture=resolve_architecture(body, partial(get_release_row, models), assumptions),
        workload=to_usage(inference, body.training),
        serving=ServiceLevel(**body.serving.model_dump()) if body.serving is not None else None,
        constraints=Constraints(**constraints),
        pricing=Pricing(**body.pricing.model_dump(exclude={"os", "as_of", "known_at", "currency"}), today=today),
        machine_described=body.hardware is not None,
        memory_unknown=body.hardware is not None and not body.hardware.memory_known,
    )


def _check_job_length(body: FitIn, workload: Workload) -> None:
    """Raise for a sort order or a bound that needs the length of the job, where the request gives none."""
    training = isinstance(workload, TrainingWorkload)
    timed = isinstance(workload, TrainingWorkload) and (workload.tokens or workload.gpu_hours) is not None
    if timed and body.pricing.hours is not None:
        raise InvalidWorkload("pricing.hours", "and training.tokens both say how long the job runs: give one")
    if not timed and body.pricing.hours is None:
        needed = "training.tokens" if training else "pricing.hours"
        if body.order == "cost_per_job":
            raise InvalidWorkload("sort", f"cost_per_job needs {needed}")
        if body.constraints.budget_usd_per_job is not None:
            raise InvalidWorkload("constraints.budget_usd_per_job", f"needs {needed}: the job has no known length")
    if not timed and body.constraints.max_hours is not None:
        raise InvalidWorkload("constraints.max_hours", "is for training with tokens or gpu_hours")
    if body.order == "time" and training and not timed:
        raise InvalidWorkload("sort", "time needs training.tokens")


def _described_machine(
    reader: Reader, hardware: HardwareIn, request: PlacementRequest, assumptions: Assumptions
) -> tuple[Vm, Machine]:
    """Map the described machine; a GPU unknown to the catalog is allowed where its memory is given."""
    gpu: Mapping[str, Any] = {}
    if hardware.gpu is not None:
        try:
            gpu = get_gpu(reader, hardware.gpu)
        except NotFound as unknown:
            if hardware.memory_gib is None and hardware.usable_gib is None:
                raise UnknownInBody("hardware.gpu", f"{unknown} Or give memory_gib.") from None
            assumptions.record(
                "hardware.gpu", hardware.gpu, "no GPU of the catalog by this name alone: any data type, no speed"
            )
    gpus = hardware.gpus
    if gpus is None:
        gpus = requested_gpus(request.workload)
        assumptions.record("hardware.gpus", gpus, "as many as the split needs" if gpus > 1 else "one GPU")
    vm = Vm(
        name="hardware",
        status="current",
        verified=True,
        usd_per_hour={**dict.fromkeys(PURCHASE_MODELS), "on_demand": hardware.usd_per_hour},
    )
    domain = hardware.scale_up_domain_gpus or gpu.get("scale_up_domain_gpus") or (1 if gpus == 1 else None)
    if domain is None:
        domain = assumptions.record("hardware.scale_up_domain_gpus", gpus, "its GPUs are joined by NVLink")
    peaks = {kind: gpu[f"{kind}_tflops"] * 1e12 for kind in PEAK_DTYPES if gpu.get(f"{kind}_tflops") is not None}
    if hardware.peak_tflops is not None:
        peaks = dict.fromkeys(MIN_CAPABILITY, hardware.peak_tflops * 1e12)
    bandwidth = _first_known(hardware.bandwidth_gb_per_s, gpu.get("memory_bandwidth_gb_per_s"))
    infiniband = True if hardware.infiniband is None else hardware.infiniband
    usual_gbps = USUAL_NETWORK_GBPS["infiniband" if infiniband else "ethernet"]
    machine = Machine(
        gpus=Fraction(gpus),
        gpu_id=gpu.get("id") if hardware.bandwidth_gb_per_s is None else None,
        usable_bytes=_described_gib(hardware, gpu, assumptions) * GIB,
        bandwidth=_scaled(bandwidth, 1e9),
        peaks=peaks,
        capability=hardware.compute_capability or gpu.get("compute_capability"),
        domain_gpus=int(domain),
        domain_vms=int(domain) // gpus if domain > MAX_GPUS_PER_SERVER else 1,
        link_gb_per_s=gpu.get("interconnect_gb_per_s"),
        infiniband=infiniband,
        network_gbps=usual_gbps if hardware.network_gbps is None else hardware.network_gbps / gpus,
        memory_bytes=_scaled(hardware.host_memory_gib, GIB),
        disk_bytes=_scaled(hardware.local_disk_gib, GIB),
        vcpus=hardware.vcpus,
        described=True,
    )
    if request.constraints.max_nodes > 1:
        if hardware.infiniband is None:
            assumptions.record("hardware.infiniband", True, "machines that work together are connected by InfiniBand")
        if hardware.network_gbps is None and machine.network_gbps is not None:
            why = f"usual with {machine.network}: {machine.network_gbps:g} for each GPU"
            assumptions.record("hardware.network_gbps", machine.network_gbps * gpus, why)
    return vm, machine


def to_sizes(rows: Iterable[Mapping[str, Any]]) -> Sizes:
    """Map rows to the VMs and machines that placement evaluates."""
    return [(to_vm(row), to_machine(row)) for row in rows]


def _option(option: PlacementOption, rate: CurrencyRate | None) -> PlacedOut:
    attempt = option.attempt
    memory, max_concurrency = per_gpu_memory(option)
    costs = {name: to_cost_out(cost_figures(option, name), rate) for name in option.costs}
    return PlacedOut(
        **shown_of(option, costs),
        nodes=attempt.nodes,
        parallelism=ParallelismOut(
            tensor=attempt.parallelism.tensor,
            pipeline=attempt.parallelism.pipeline,
            expert=attempt.parallelism.expert,
            data_attention=attempt.parallelism.data,
            data=attempt.replicas,
            zero_stage=attempt.zero_stage,
            gpus=attempt.gpus,
            idle_gpus=attempt.nodes * option.machine.ranks - attempt.gpus,
        ),
        per_gpu=memory,
        max_concurrency=max_concurrency,
        speed=speed_figures(option),
        serving=service_figures(option),
        unused_gpu_memory_gib=None,
        unused_gpu_memory_percent=None,
        pareto_optimal=option.pareto_optimal,
        explanation=explain(option),
    )
