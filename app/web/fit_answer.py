"""What the fit page shows of an answer: layouts in words, bars, costs, and rejected sizes with links that fix them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

from app.catalog.queries.params import SizeRequirements
from app.fit.formulas.quantities import Figure
from app.fit.results import FamilyAccuracy, PerGpuMemory, read_accuracy
from app.fit.verdict import MAX_REJECTED, QUANTITIES
from app.schemas.fit_response import FailureOut, FitAnswerOut, MissOut, OptionCostOut, ParallelismOut
from app.validation import plural
from app.web.fit_view import FitView, param_of
from app.web.rendering import PURCHASE_TITLES, format_number, middle
from app.web.serving import PageRequest

REASONS: Mapping[str, str] = {
    "GPU_MEMORY_TOTAL": "Too little GPU memory",
    "GPU_MEMORY_PER_GPU": "Too little memory on each GPU",
    "GPU_COUNT": "Too few GPUs, or none",
    "GPU_UNKNOWN": "GPUs that no source describes",
    "FRACTIONAL_GPU": "Parts of a GPU, which do not add up",
    "DTYPE_UNSUPPORTED": "GPUs that do not compute in the type, are for graphics or too old",
    "TP_HEADS": "The tensor ranks do not divide the model",
    "TP_BLOCKS": "The tensor ranks would split blocks of quantized weights",
    "PP_LAYERS": "More stages than layers",
    "NVLINK_DOMAIN": "More tensor ranks than NVLink joins",
    "MAX_NODES": "More VMs than allowed",
    "TIME": "Too slow",
    "TPOT": "Too long for each token",
    "TTFT": "Too long to the first token",
    "VCPU": "Too few vCPUs",
    "RAM": "Too little memory of the VM",
    "LOCAL_DISK": "Too little local disk",
    "NETWORK": "Too slow a network",
    "INFINIBAND": "Too slow InfiniBand",
    "NO_INFINIBAND": "InfiniBand is not as asked",
    "NETWORK_UNKNOWN": "Several VMs, joined by a network of unknown speed",
    "NO_NVLINK": "NVLink is not as asked",
    "ARCH": "Another CPU architecture",
    "FEATURE": "A feature is missing or not known",
    "NOT_IN_REGION": "No price in the region",
    "RETIRED": "Retired",
    "WITHDRAWN": "No longer for sale",
    "STATUS": "Another status",
    "BUDGET": "Over the budget",
    "NO_PRICE": "No known price, so within no budget",
    "UNVERIFIED": "Named by third parties only",
}
"""What a code of `rejection_summary` says."""

_AMOUNTS = frozenset(quantity.code for quantity in QUANTITIES)
"""Codes of raw needs that also sizes have of which no source states the amount."""
_AMOUNTS_OF_HOSTS = frozenset({"RAM", "LOCAL_DISK"})
"""The same for a model; what GPUs have is known of a size on which it was tried."""
_UNKNOWN = frozenset({"GPU_UNKNOWN", "NETWORK_UNKNOWN", "FEATURE"})

WARNINGS: Mapping[str, str] = {
    "NO_PRICE": "no known price",
    "OLD_PRICE": "old price",
    "UNUSUAL_PRICE": "unusual price",
    "DISPUTED_PRICE": "disputed price",
    "COMMITMENT": "paid for 730 hours of each month, used or not; a job is charged its share",
    "PREVIEW": "preview",
    "RETIRING": "retiring",
    "RETIRED": "retired",
    "WITHDRAWN": "withdrawn",
    "UNVERIFIED": "unverified",
    "TP_OVER_PCIE": "PCIe between GPUs",
    "TP_KV_REPLICATED": "KV heads replicated",
    "NODES_WITHOUT_INFINIBAND": "Ethernet between VMs: no InfiniBand known",
    "NETWORK_UNKNOWN": "no speed: the network between VMs is unknown",
    "PEAK_UNKNOWN": "no time of a prompt or a training: the GPU's peak is unknown",
    "UNMEASURED": "backed by no measurement",
    "WEIGHT_ONLY": "weights unpacked to 16 bits",
    "MODEL_ASSUMED": "unknown type of model",
    "NO_KV_CACHE": "no KV cache counted",
    "LONG_CONTEXT": "longer than made for",
    "TPOT_UNCERTAIN": "a token may take longer",
    "TPOT_UNLIKELY": "a token probably takes longer",
    "TTFT_UNLIKELY": "the first token probably takes longer",
    "TTFT_UNCERTAIN": "the first token may take longer",
    "TIGHT": "tight",
    "GPU_OF_SERIES": "GPU known by series",
    "USABLE_MEMORY_ASSUMED": "usable memory assumed",
    "FEW_VCPUS": "few vCPUs",
    "NO_LOCAL_DISK": "needs a disk for the checkpoint",
}
"""What a warning says in a few words; docs/fit.md says more."""

TRAINING_METHODS: Mapping[str, str] = {"full": "all weights", "lora": "LoRA", "qlora": "QLoRA"}
"""What a method of training is called."""

LIMITS: Mapping[str, str] = {
    "memory": "memory of the KV cache",
    "tpot": "the time per token",
    "ttft": "the time to the first token",
    "prefill": "prompts of other requests",
    "engine": "1,024 requests of an engine",
}
"""What limits the requests that a replica has open at a time."""

RESOURCES: Mapping[str, str] = {
    quantity.resource: quantity.label.capitalize() if quantity.label.islower() else quantity.label
    for quantity in QUANTITIES
}
"""What a resource is called."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the memory of a GPU in GiB, and where it is on a bar of 100."""

    kind: str
    title: str
    gib: float
    start: float
    width: float


_PARTS = (
    ("weights", "weights"),
    ("states", "weights, gradients, optimizer"),
    ("kv_cache", "KV cache"),
    ("buffers", "buffers"),
    ("activations", "activations"),
    ("overhead", "overhead"),
)


def memory_parts(memory: PerGpuMemory) -> list[Part]:
    """Return the parts of the memory that may be used of a GPU, the free one last; empty where it is not known."""
    if memory.budget is None:
        return []
    amounts = [(kind, title, middle(getattr(memory, kind)) or 0.0) for kind, title in _PARTS if getattr(memory, kind)]
    budget = middle(memory.budget) or 0.0
    used = sum(gib for _, _, gib in amounts)
    amounts.append(("free", "free", max(budget - used, 0.0)))
    parts, start, scale = [], 0.0, 100 / max(budget, used)
    for kind, title, gib in amounts:
        parts.append(Part(kind, title, gib, round(start, 2), round(gib * scale, 2)))
        start += gib * scale
    return parts


@dataclass(frozen=True, slots=True)
class Span:
    """A range, and where it is on a bar of 100 that all options share.

    `outside` is what was not measured; `target` is what it must not be more than.
    """

    low: float
    mid: float
    high: float
    scale: float
    outside: Sequence[str] = ()
    runs: int | None = None
    target: float | None = None

    @property
    def backing(self) -> str:
        """How many measured runs are such, in words."""
        return plural(self.runs, "such run") if self.runs else "not measured"

    def at(self, value: float) -> float:
        """Return where a value is on the bar."""
        return round(100 * value / self.scale, 2)


def spans(figures: Sequence[Figure | None], target: float | None = None) -> list[Span | None]:
    """Return the ranges of estimates with one scale for all, on which a target is, too; None where there is none."""
    highs = [float(figure.high) for figure in figures if figure is not None and figure.high is not None]
    return [_span(figure, max([*highs, target or 0.0]) or 1.0, target) for figure in figures]


def _span(figure: Figure | None, scale: float, target: float | None) -> Span | None:
    if figure is None or figure.low is None or figure.mid is None or figure.high is None:
        return None
    outside, runs = (figure.evidence.outside, figure.evidence.n) if figure.evidence else ((), None)
    return Span(float(figure.low), float(figure.mid), float(figure.high), scale, outside, runs, target)


def layout_words(nodes: int, split: ParallelismOut | None) -> list[str]:
    """Return a layout in words, the number of VMs first."""
    words = [f"{nodes:,} VM{'s' if nodes > 1 else ''}"]
    if split is None:
        return words
    if split.tensor > 1:
        words.append(f"each layer split over {split.tensor} GPUs (TP {split.tensor})")
    if split.pipeline > 1:
        words.append(f"{split.pipeline} stages (PP {split.pipeline})")
    if split.data_attention > 1:
        words.append(f"{split.data_attention} groups with their own sequences (DP attention {split.data_attention})")
    if split.expert > 1:
        words.append(f"experts spread over {split.expert} GPUs (EP {split.expert})")
    if split.data > 1:
        words.append(f"{split.data} replicas" if split.zero_stage is None else f"{split.data} data-parallel ranks")
    if split.zero_stage is not None:
        words.append(f"ZeRO stage {split.zero_stage}" if split.zero_stage else "no ZeRO")
    if split.gpus == 1:
        words.append("on one GPU")
    if split.idle_gpus:
        words.append(f"{split.idle_gpus} GPU{'s' if split.idle_gpus > 1 else ''} idle")
    return words


def cost_lines(costs: Mapping[str, OptionCostOut | None], first: str) -> list[dict[str, Any]]:
    """Return the cost by purchase model in the currency of the page, the one that ranks first.

    Others without a price are left out.
    """
    units = {"hour": "hour", "month": "month", "million": "million_tokens", "job": "job", "request": "request"}
    lines = []
    for name in (first, *(name for name in costs if name != first)):
        if (cost := costs[name]) is not None and (name == first or cost.usd_per_hour):
            amounts, prefix = (cost.converted, "cost_per") if cost.converted is not None else (cost, "usd_per")
            shown = {name: getattr(amounts, f"{prefix}_{unit}") for name, unit in units.items()}
            lines.append({"title": PURCHASE_TITLES[name], "cost": cost, **shown})
    return lines


def rows_of(answer: FitAnswerOut, view: FitView) -> list[dict[str, Any]]:
    """Return the options of an answer as the table shows them.

    `token` is the time per token in ms, `hours` how long a training takes, `gpus` how many are paid for meanwhile.
    """
    items = answer.items
    speeds = [item.speed for item in items]
    rates = spans([speed.expected_tokens_per_s if speed else None for speed in speeds])
    first = spans([speed.ttft if speed else None for speed in speeds], view.ttft_ms)
    steps = spans([speed.expected_step if speed else None for speed in speeds], view.tpot_ms)
    hours = spans([speed.hours if speed else None for speed in speeds], view.max_hours)
    return [
        {
            "option": item,
            "layout": layout_words(item.nodes, item.parallelism),
            "memory": memory_parts(item.per_gpu) if item.per_gpu else (),
            "speed": rate,
            "first_token": ttft,
            "token": step,
            "hours": duration,
            "gpus": item.parallelism.gpus + item.parallelism.idle_gpus if item.parallelism else 1,
            # a step, in ms, gives each sequence one token
            "per_user": 1000 / step.mid if step and step.mid else None,
            "costs": cost_lines(dict(item.cost), view.purchase),
        }
        for item, rate, ttft, step, duration in zip(items, rates, first, steps, hours, strict=True)
    ]


def evidence_of(answer: FitAnswerOut) -> list[FamilyAccuracy]:
    """Return the families of measurements that the shown estimates rest on."""
    speeds = [item.speed for item in answer.items if item.speed is not None]
    shown = ((speed.expected_tokens_per_s, speed.ttft, speed.hours) for speed in speeds)
    figures = [figure for of_one in shown for figure in of_one if figure]
    names = {figure.evidence.family for figure in figures if figure.evidence is not None}
    return [family for family in read_accuracy() if family.family in names]


def groups_of(answer: FitAnswerOut, request: PageRequest) -> list[dict[str, Any]]:
    """Return the rejected sizes by their first reason, each with changes in words and links that make it fit.

    Groups are in the order of their nearest miss, and name the sizes that are nearest to fitting. Those that may have
    sizes of which too little is known say so.
    """
    amounts = _AMOUNTS if request.params.by == "resources" else _AMOUNTS_OF_HOSTS
    by_code: dict[str, list[MissOut]] = {}
    for miss in answer.rejected:
        by_code.setdefault(miss.failures[0].code, []).append(miss)
    return [
        {
            "code": code,
            "title": f"{_reason(code)}, or an unknown amount" if code in amounts else _reason(code),
            "is_unknown": code in amounts | _UNKNOWN,
            "count": answer.rejection_summary[code],
            "all": request.link(misses=MAX_REJECTED) if request.params.misses < MAX_REJECTED else "",
            "misses": [(miss, _fixes(miss, request)) for miss in misses[: request.params.misses]],
        }
        for code, misses in by_code.items()
    ]


def _reason(code: str) -> str:
    return REASONS.get(code, code.replace("_", " ").capitalize())


def _fixes(miss: MissOut, request: PageRequest) -> list[tuple[str, str]]:
    """Return changes that make a size fit: in words, each with the URL that has it applied."""
    fixes = []
    for fix in miss.fixes:
        patch = ((f"{part}.{name}", value) for part, fields in fix.patch.items() for name, value in fields.items())
        changes = {param_of(path): value for path, value in patch}
        fixes.append((fix_words(changes, fix.text), _url(request, changes)))
    return fixes or list(_relaxed(miss.failures, request))


def _relaxed(failures: Iterable[FailureOut], request: PageRequest) -> Iterable[tuple[str, str]]:
    """Yield one change after which raw needs are met: amounts that the size has, and other needs given up.

    Nothing where a failure is no need that the request can give up, or an amount is unknown.
    """
    params = request.params
    changes: dict[str, Any] = {}
    for failure in failures:
        name = failure.constraint
        if name == "budget_usd_per_month" and failure.required is not None:
            changes[name] = Decimal(ceil(failure.required))
        elif name.startswith("min_") and failure.available:
            changes[name] = int(failure.available) if failure.available.is_integer() else failure.available
        elif (
            not name.startswith("min_") and name in SizeRequirements.model_fields and getattr(params, name) is not None
        ):
            changes[name] = None
        elif name == "region":
            changes |= {place: () for place in ("region", "country", "continent") if getattr(params, place)}
        else:
            return
    yield fix_words(changes, ""), _url(request, changes)


def _url(request: PageRequest, changes: Mapping[str, Any]) -> str:
    """Return the URL of the page with changes; empty if they are no parameters of it, or it becomes too long."""
    if not changes.keys() <= type(request.params).model_fields.keys():
        return ""
    exact = {name: Decimal(str(value)) for name, value in changes.items() if name.startswith("budget")}
    return request.link(**{**changes, **exact})


def fix_words(changes: Mapping[str, Any], text: str) -> str:
    """Return changes of parameters in words; `text` where there are none for them."""
    words = [_change_words(name, value) for name, value in changes.items()]
    return " and ".join(word for word in words if word) if all(words) else text


def _change_words(name: str, value: Any) -> str:
    if name == "budget_usd_per_month":
        return f"a budget of {format_number(value)} USD a month"
    if name == "checkpoint_on_local_disk" and value is False:
        return "no checkpoint on the local disk"
    if name == "method":
        return f"training by {TRAINING_METHODS.get(value, value)}"
    if name in _CHANGES and value is not None:
        return _CHANGES[name].format(value=format_number(value) if isinstance(value, int | float) else value)
    if value in (None, ()):
        return f"without {name.replace('_', ' ')}"
    return f"{_AMOUNT_TITLES[name]} from {format_number(value)}" if name in _AMOUNT_TITLES else ""


_CHANGES: Mapping[str, str] = {
    "concurrency": "{value} users at a time",
    "context_tokens": "a context of {value} tokens",
    "dtype": "weights in {value}",
    "kv_dtype": "KV cache in {value}",
    "max_nodes": "up to {value} VMs",
    "users": "{value} users",
    "requests_per_second": "{value} requests a second",
    "requests_per_day": "{value} requests a day",
    "input_tokens": "prompts of {value} tokens",
    "output_tokens": "answers of {value} tokens",
    "ttft_ms": "{value} ms to the first token",
    "tpot_ms": "{value} ms a token",
    "micro_batch": "a micro-batch of {value}",
    "recompute": "{value} recomputation",
    "offload": "offload: {value}",
    "precision": "matrix products in {value}",
    "max_hours": "{value} hours",
    "budget_usd_per_job": "a budget of {value} USD for the job",
}
_AMOUNT_TITLES: Mapping[str, str] = {
    quantity.name: quantity.label if quantity.unit == "count" else f"{quantity.unit} of {quantity.label}"
    for quantity in QUANTITIES
}
