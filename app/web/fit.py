"""The fit page: which sizes hold a model or raw needs, how, how fast and at what cost; and why the others do not.

The state is the URL. A pasted `config.json` is sent by POST, as it may be longer than a URL; links of the page that
answers have it without white space, and are left out where it is too long even so.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

import orjson

from app.catalog.queries.lookups import ModelsByKey, RegionPlace, get_release_row
from app.catalog.queries.params import SizeRequirements
from app.catalog.queries.snapshot import Catalog, computing
from app.errors import BadQuery, BadWorkload, NotFound
from app.fit.results import DEPARTURES
from app.schemas.fit_request import FitIn
from app.schemas.fit_response import FitAnswerOut
from app.web import fit_answer
from app.web.filter_panel import Choice
from app.web.fit_view import FitView, check_kind, param_of, read_body, sorts_of, to_body
from app.web.rendering import render_page
from app.web.serving import PageContent, PageRequest
from app.web.sizes_view import find_price_bar, regions_by_cloud

_DTYPES = ("fp16", "bf16", "fp8", "int8", "awq_int4", "gptq_int4", "mxfp4", "nvfp4", "gguf_q4_k_m", "gguf_q8_0")
_KV_DTYPES = ("bf16", "fp8")
_KINDS = {"model": "Model", "config": "config.json", "resources": "Raw needs"}
_USES = {"context": "Users", "service": "Service level", "training": "Training"}
_MODEL = ("by", "model", "config", "dtype", "kv_dtype", "engine", "tensor_parallel", "pipeline_parallel")
_SERVED = ("dtype", "kv_dtype", "engine")
_AMOUNTS = ("min_gpu_mem", "min_gpu_mem_per_gpu", "min_gpus", "min_vcpus", "min_memory", "min_local_disk")
_RATES = ("min_network_gbps", "min_infiniband_gbps")
_TRAITS = tuple(name for name in SizeRequirements.model_fields if name not in (*_AMOUNTS, *_RATES, "arch"))
_PLACES = ("region", "provider", "country", "continent")
_CHOSEN = ("gpu", "series", "name", "provider")
"""The parameters that say which sizes are asked about."""
_SHARED = (*_PLACES, "gpu", "series", "name", "max_nodes", "budget_usd_per_month", "purchase", "os", "currency")
"""The parameters that a link to another kind of need keeps."""

EXAMPLES = (
    ("Llama 3.3 70B in FP8 for 64 users", {"model": "llama-3.3-70b", "dtype": "fp8", "concurrency": 64}),
    ("Llama 3.1 8B with 32,768 tokens of context", {"model": "llama-3.1-8b", "context_tokens": 32768}),
    ("gpt-oss 120B for 16 users", {"model": "gpt-oss-120b", "concurrency": 16}),
    (
        "Llama 3.1 70B for 5 requests a second, the first token in half a second",
        {
            "model": "llama-3.1-70b",
            "use": "service",
            "input_tokens": 2000,
            "output_tokens": 300,
            "requests_per_second": 5,
            "ttft_ms": 500,
            "tpot_ms": 40,
        },
    ),
    (
        "Fine-tune Llama 3.1 8B by QLoRA on 100 million tokens",
        {"model": "llama-3.1-8b", "use": "training", "method": "qlora", "tokens": 100_000_000, "sequence_tokens": 2048},
    ),
    ("DeepSeek R1 on up to four VMs", {"model": "deepseek-r1", "max_nodes": 4}),
    ("640 GiB of GPU memory with InfiniBand", {"by": "resources", "min_gpu_mem": 640, "infiniband": True}),
    ("64 vCPUs and 256 GiB of memory", {"by": "resources", "min_vcpus": 64, "min_memory": 256}),
)
"""What the page without a question proposes."""


async def render(request: PageRequest) -> str:
    """Render the page; without an answer where nothing is asked for or a parameter is invalid."""
    view: FitView = request.params
    check_kind(view)
    snapshot = await request.executor.snapshot()
    body = to_body(view)
    shown_body = orjson.dumps({name: value for name, value in body.items() if value != {}}, default=float).decode()
    answer, problem = await _answer(request, view, body)
    bar = await request.executor.ask(find_price_bar)
    assumed = {assumption.field: assumption.value for assumption in answer.assumptions} if answer else {}
    return render_page(
        request,
        "fit.html",
        answer=answer,
        is_filtered=any(getattr(view, name) for name in _CHOSEN),
        problem=problem,
        title=_title(view, snapshot.models),
        kinds=[(kind, title, _url_with(request, _SHARED, by=kind)) for kind, title in _KINDS.items()],
        models=sorted({row["id"]: row for row in snapshot.models.values()}.values(), key=itemgetter("id")),
        uses=[(use, title, _url_with(request, _kept_for(use), use=use)) for use, title in _USES.items()],
        rows=fit_answer.rows_of(answer, view) if answer else (),
        groups=fit_answer.groups_of(answer, request) if answer else (),
        evidence=fit_answer.evidence_of(answer) if answer else (),
        warnings=fit_answer.WARNINGS,
        resources=fit_answer.RESOURCES,
        limits=fit_answer.LIMITS,
        departures=DEPARTURES,
        context=view.context_tokens or assumed.get("inference.context_tokens"),
        examples=[(text, _url_with(request, request.price_names(), **changes)) for text, changes in EXAMPLES],
        link=request.link(),
        traits=_TRAITS,
        regions=_regions(view, bar.regions, snapshot.regions),
        currencies=bar.currencies,
        sorts=_sorts(view),
        dtypes=_with_chosen(_DTYPES, view.dtype, "as released"),
        kv_dtypes=_with_chosen(_KV_DTYPES, view.kv_dtype, "16 bits"),
        body=shown_body.replace("'", "'\\''"),  # between single quotes of a shell
    )


def _regions(view: FitView, names: Mapping[str, str], places: Mapping[str, RegionPlace]) -> list[Choice]:
    """Return the regions to choose from, chosen ones first, then by cloud."""
    choices = [Choice(code, title, None, code in view.region) for code, title in regions_by_cloud(names, places)]
    return sorted(choices, key=lambda choice: not choice.checked)


async def _answer(request: PageRequest, view: FitView, body: Mapping[str, Any]) -> tuple[FitAnswerOut | None, str]:
    """Return the answer, and what is wrong where that is about no parameter that was given.

    Raises BadQuery for a parameter that is wrong.
    """
    if request.errors or not view.asks:
        return None, ""
    question = read_body(body)
    try:
        return await request.executor.ask(_place, question, view.misses), ""
    except BadWorkload as error:
        name, detail = param_of(error.field), _PART.sub("", error.detail)
        detail = detail.replace("A body of the API may give architecture or config", "Its config.json may be pasted")
        if name not in view.model_fields_set:
            return None, str(error)
        shown = None if name == "config" else error.value
        raise BadQuery(name, shown, detail) from None


_PART = re.compile(r"\b(?:constraints|inference|pricing|serving|training)\.(?=[a-z])")
"""The object of a body before the name of a field, which parameters do without."""


@computing
def _place(catalog: Catalog, question: FitIn, misses: int) -> FitAnswerOut:
    from app.services.fit import plan_fit

    return plan_fit(catalog, question, most_of_reason=misses)


def _title(view: FitView, models: ModelsByKey) -> str:
    """Return what has to fit; a model that is unknown by its name as it was given, and the answer then says so."""
    if view.by == "resources":
        return "these needs"
    if view.by == "config" and view.config:
        named = json.loads(view.config).get("model_type")
        return f"this {named} model" if isinstance(named, str) else "this model"
    if view.by == "model" and view.model:
        with suppress(NotFound):
            return str(get_release_row(models, view.model)["name"])
    return view.model or ""


def _kept_for(use: str) -> list[str]:
    """Return the parameters that a link to the same model for another use keeps."""
    return [name for name in (*_MODEL, *_SHARED) if use != "training" or name not in _SERVED]


def _url_with(request: PageRequest, names: Sequence[str], **changes: object) -> str:
    """Return the URL of the page with these of its parameters, and with changes."""
    given = request.params.model_fields_set
    kept = {name: getattr(request.params, name) for name in names if name in given}
    return request.url(**{**dict.fromkeys(given), **kept, **changes})


def _sorts(view: FitView) -> list[tuple[str, str]]:
    """Return the options of the order, the default first without a value."""
    sorts = sorts_of(view.by, view.use)
    default = view.model_copy(update={"sort": None}).order
    others = [(name, title) for name, title in sorts.items() if name != default]
    named = [(view.sort, sorts[default])] if view.sort == default else [("", sorts[default])]
    return [*named, *others]


def _with_chosen(common: Sequence[str], chosen: str | None, none: str) -> list[tuple[str, str]]:
    names = [*common, *([chosen] if chosen and chosen not in common else [])]
    return [("", none), *((name, name.replace("_", " ")) for name in names)]


PAGE = PageContent(params=FitView, render=render)
