"""The tool fit_workload: the sizes that hold a model or meet raw needs, why others do not, and what would help."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from app.catalog.queries.params import parse_gpu_count
from app.mcp import tool
from app.questions import Inquiry
from app.schemas.fit_request import FitIn, Recompute, TrainingMethod
from app.validation import plural

DEFAULT_LIMIT = 3


def _sets(
    path: str, json_type: str, read: Callable[[Any], Any], description: str = "", allowed: tuple[str, ...] = ()
) -> tool.Argument:
    return tool.Argument(type=json_type, description=description, sets=path, read=read, allowed=allowed)


def _need(name: str, description: str = "") -> tool.Argument:
    return replace(tool.filter_argument(name, description), sets=f"resources.{name}")


ARGUMENTS: Mapping[str, tool.Argument] = {
    "model": tool.Argument(type="string", description="'Llama 3.1 70B', a Hugging Face id"),
    "users": replace(
        _sets("inference.concurrency", "integer", tool.read_count, "sequences at a time"),
        units=("concurrent users", "sequences"),
    ),
    "context": _sets("inference.context_tokens", "string", tool.read_tokens, "tokens of a user or sequence: 32k"),
    "dtype": _sets("inference.dtype", "string", tool.read_word, "of weights: bf16, fp8, int4"),
    "kv_dtype": _sets("inference.kv_dtype", "string", tool.read_word),
    "input_tokens": _sets("serving.input_tokens", "string", tool.read_tokens, "of a request"),
    "output_tokens": _sets("serving.output_tokens", "string", tool.read_tokens),
    "requests_per_second": _sets("serving.requests_per_second", "number", tool.read_number, "load; or users"),
    "ttft_ms": _sets("serving.ttft_ms", "number", tool.read_number, "targets: most ms"),
    "tpot_ms": _sets("serving.tpot_ms", "number", tool.read_number),
    "train": _sets("training.method", "string", tool.read_word, "instead of serving", get_args(TrainingMethod)),
    "tokens": _sets("training.tokens", "string", tool.read_job_tokens, "trained on: 1B"),
    "recompute": _sets("training.recompute", "string", tool.read_word, allowed=get_args(Recompute)),
    "min_gpu_mem": _need("min_gpu_mem", "raw needs: GiB"),
    "min_gpus": replace(_need("min_gpus"), read=parse_gpu_count),
    "min_vcpus": _need("min_vcpus"),
    "min_memory": _need("min_memory"),
    "gpu": replace(tool.GPU, sets="constraints.gpu"),
    "region": replace(tool.REGION, sets="constraints.regions"),
    "provider": _sets("constraints.provider", "string", tool.read_words),
    "max_nodes": replace(_sets("constraints.max_nodes", "integer", tool.read_count, "VMs"), units=("VMs",)),
    "max_usd_per_month": _sets("constraints.budget_usd_per_month", "number", tool.read_number),
    "purchase": replace(tool.SAME_PURCHASE, sets="pricing.purchases", read=lambda value: [tool.read_purchase(value)]),
    "os": replace(tool.OS, sets="pricing.os"),
    "as_of": replace(tool.DAY, sets="pricing.as_of"),
    "currency": replace(tool.CURRENCY, sets="pricing.currency"),
    "limit": tool.Argument(type="integer", read=tool.read_limit),
}


_SERVICE = ("input_tokens", "output_tokens", "requests_per_second", "ttft_ms", "tpot_ms")
_TRAINING = ("tokens", "recompute")
_OF_MODELS = ("users", "context", "dtype", "kv_dtype", *_SERVICE, "train", *_TRAINING)
_NEEDS = tuple(name for name, argument in ARGUMENTS.items() if argument.sets.startswith("resources."))


def fit_workload(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Find the sizes that fit; raises BadArguments for what contradicts, and what the fit raises."""
    _check_use(values)
    if "gpu" in values:
        values = values | {"gpu": tool.find_gpus(inquiry, values["gpu"])}
    body = FitIn.model_validate(_to_body(values))
    answer = inquiry.ask("POST /fit", body)
    currency = values.get("currency", "").upper()
    content: dict[str, Any] = {
        "fits": answer["fits"],
        "total": answer["total"],
        "options": [_to_option(option, currency) for option in answer["items"]],
        "rejected": answer["rejection_summary"],
        "nearest_misses": [
            {
                "size": miss["size"],
                "why_not": [failure["detail"] for failure in miss["failures"][:2]],
                "fixes": [arguments for fix in miss["fixes"] if (arguments := _to_arguments(fix["patch"]))],
            }
            for miss in answer["nearest_misses"]
        ],
    }
    if "no_price" in answer:
        content["no_price"] = answer["no_price"]["detail"]
    return tool.Reply(
        text=_to_text(answer, currency),
        content=content,
        lists=("nearest_misses", "options"),
        totals={"options": answer["total"]},
        narrow=f"region, gpu, max_usd_per_month{tool.more_by_limit(values, DEFAULT_LIMIT)}",
    )


def _check_use(values: Mapping[str, Any]) -> None:
    """Check that the arguments are of a model or of raw needs, not of both."""
    needs = [name for name in _NEEDS if name in values]
    of_models = [name for name in _OF_MODELS if name in values]
    if "model" not in values and (of_models or not needs):
        allowed = f"is required{f' with {of_models[0]}' if of_models else ', or raw needs such as min_gpu_mem'}"
        raise _refusal(allowed, "model")
    if "model" in values and needs:
        raise _refusal("is for raw needs; a model's needs are computed, leave it out", *needs)
    serving = [name for name in _SERVICE if name in values]
    training = [name for name in _TRAINING if name in values]
    if training and "train" not in values:
        raise _refusal("is for a model that is trained; give train, too", training[0])
    if "train" in values and (serving or "users" in values):
        raise _refusal("is for a model that is served; leave out either it or train", [*serving, "users"][0])


def _refusal(allowed: str, *names: str) -> tool.BadArguments:
    return tool.BadArguments([tool.ArgumentError(field=name, value=None, allowed=allowed) for name in names])


def _to_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of POST /fit that the arguments mean; with a load, `users` are those of a service."""
    body: dict[str, Any] = {"limit": values.get("limit", DEFAULT_LIMIT)}
    if "model" in values:
        body |= {"model": values["model"]}
        part = "training" if "train" in values else "serving" if set(_SERVICE) & set(values) else "inference"
        body[part] = {}
    for name, value in values.items():
        part, _, field = ARGUMENTS[name].sets.partition(".")
        if name == "users" and "serving" in body:
            part, field = "serving", "users"
        elif name == "context" and "training" in body:
            part, field = "training", "sequence_tokens"
        if field:
            body.setdefault(part, {})[field] = value
    return body


def _to_option(option: Mapping[str, Any], currency: str) -> dict[str, Any]:
    costs = {name: cost for name, cost in option["cost"].items() if cost is not None}
    shown: dict[str, Any] = {"size": option["size"], "region": option["region"], "vms": option["nodes"]}
    if layout := option.get("parallelism"):
        names = (("tensor", "TP"), ("pipeline", "PP"), ("data", "DP"))
        shown["layout"] = " ".join(f"{short}={layout[name]}" for name, short in names if layout[name] > 1) or "1 GPU"
    for purchase, cost in costs.items():
        shown[purchase] = {"usd_per_hour": cost["usd_per_hour"], "usd_per_month": cost["usd_per_month"]}
        shown[purchase] |= tool.adjustment_of(cost)
        if (of_job := cost.get("usd_per_job")) is not None:
            shown[purchase]["usd_per_job"] = _range(of_job)
        if "estimate" in cost:
            shown[purchase]["computed"] = True
        if currency and "converted" in cost:
            shown[purchase][f"{currency.lower()}_per_hour"] = cost["converted"]["cost_per_hour"]
    first = next(iter(costs.values()), None)
    shown["price_as_of"] = first["as_of"] if first else None
    shown |= _speeds(option)
    if option["status"] != "current":
        shown["status"] = option["status"]
    return shown | {"warnings": option["warnings"], "why": option["explanation"]}


def _speeds(option: Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimates as ranges `[low, high]`."""
    speed = option.get("speed") or {}
    figures = {
        "max_users": option.get("max_concurrency"),
        "tokens_per_s": speed.get("expected_tokens_per_s"),
        "ttft_ms": speed.get("ttft"),
        "hours": speed.get("hours"),
    }
    return {name: _range(figure) for name, figure in figures.items() if figure is not None}


def _range(figure: Mapping[str, Any]) -> list[float]:
    ends = (figure["low"], figure["high"]) if figure["value"] is None else (figure["value"],) * 2
    return [float(f"{end:.3g}") for end in ends]


def _to_arguments(patch: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a patch of the body as arguments; empty where no arguments make the change."""
    names = {argument.sets: name for name, argument in ARGUMENTS.items() if argument.sets}
    names |= {"serving.users": "users", "training.sequence_tokens": "context"}
    changes = {f"{part}.{field}": value for part, fields in patch.items() for field, value in fields.items()}
    return {names[path]: value for path, value in changes.items()} if changes.keys() <= names.keys() else {}


def _to_text(answer: Mapping[str, Any], currency: str) -> str:
    note = f" {answer['no_price']['detail']}." if "no_price" in answer else ""
    if answer["items"]:
        best = answer["items"][0]
        name = tool.mark_unverified(best["size"], verified="UNVERIFIED" not in best["warnings"])
        costs: Mapping[str, Any] = next((cost for cost in best["cost"].values() if cost is not None), {})
        hourly = costs.get("converted", {}).get("cost_per_hour")
        converted = f" That is {hourly} {currency} an hour." if hourly is not None else ""
        return f"{plural(answer['total'], 'size')} can do it. {name}: {best['explanation']}{converted}{note}"
    misses = answer["nearest_misses"]
    nearest = f" The nearest, {misses[0]['size']}: {misses[0]['failures'][0]['detail']}." if misses else ""
    return f"No size fits; {answer['rejected_total']:,} were checked.{nearest}{note}"


FIT_WORKLOAD = tool.Tool(
    name="fit_workload",
    description="Which VMs serve or train a language model or meet raw needs, at what cost and speed; why the nearest "
    "do not, and arguments that make them fit. Ranges are [low, high].",
    arguments=ARGUMENTS,
    output={
        "fits": {"type": "boolean"},
        "total": {"type": "integer"},
        "options": tool.LIST,
        "rejected": tool.OBJECT,
        "nearest_misses": tool.LIST,
        "no_price": tool.TEXT,
    },
    always=("fits", "total", "options", "nearest_misses"),
    run=fit_workload,
)
