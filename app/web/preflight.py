"""The page of a preflight: a plan and quotas, pasted or uploaded, and whether the plan fits.

The answer is that of `POST /preflight`. What is sent is kept nowhere, neither here nor in a cache on the way.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from app.catalog.queries.params import PlainText, QueryParams
from app.errors import BadQuery, BadWorkload
from app.questions import check_quotas
from app.schemas.preflight_request import PreflightIn, QuotaUsageIn
from app.web.rendering import render_page
from app.web.serving import PageContent, PageRequest, plain_lines

EXAMPLE = """size,region,count,purchase
Standard_NC24ads_A100_v4,westeurope,4,
Standard_D8s_v5,westeurope,2,spot"""
_MAX_TEXT = 1_000_000
_VERDICTS = {
    "fits": "The plan fits",
    "missing": "The plan does not fit",
    "unknown": "Whether the plan fits is unknown",
    "error": "The plan names what the catalog does not have",
}
_KINDS = {"fits": "good", "missing": "bad", "unknown": "warn", "error": "bad"}

_Text = Annotated[str, Field(max_length=_MAX_TEXT), AfterValidator(plain_lines)]


class PreflightView(QueryParams):
    """A plan of VMs, and the quotas that are left."""

    plan: _Text | None = Field(default=None, description="CSV, JSON, or the JSON of a plan of Terraform.")
    usage: _Text | None = Field(default=None, description="Quotas, as the vendor's command prints them as JSON.")
    skus: _Text | None = Field(default=None, description="What `az vm list-skus --all` prints as JSON.")
    region: PlainText | None = Field(default=None, description="The region of VMs and of quotas that name none.")


async def render(request: PageRequest) -> str:
    """Render the form and, with a plan, the answer."""
    return render_page(
        request,
        "preflight.html",
        answer=await _check(request),
        example=EXAMPLE,
        verdicts=_VERDICTS,
        kinds=_KINDS,
        reasons_of=reasons_of,
    )


_NEEDS = {"missing: ": "not enough is left of ", "unknown: ": "unknown whether enough is left of "}
"""How the API's details of an item begin, and how the page has it."""


def reasons_of(details: Sequence[str]) -> str:
    """Return why an item does not fit, or may not: the quotas of each verdict together, what else there is last."""
    quotas = {begin: [detail.removeprefix(begin) for detail in details if detail.startswith(begin)] for begin in _NEEDS}
    said = [
        f"{_NEEDS[begin]}{' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
        for begin, names in quotas.items()
        if names
    ]
    return "; ".join([*said, *(detail for detail in details if not detail.startswith(tuple(_NEEDS)))])


async def _check(request: PageRequest) -> Any:
    """Return the answer; None without a plan. Raises BadQuery naming the field that cannot be read."""
    view: PreflightView = request.params
    if request.errors or not view.plan:
        return None
    usage = (QuotaUsageIn(text=view.usage),) if view.usage else ()
    body = PreflightIn(plan=view.plan, usage=usage, skus=view.skus or None, region=view.region)
    try:
        return await request.executor.ask(check_quotas, body)
    except BadWorkload as error:
        detail = re.sub(r"^(?=\d+: )", "line ", error.detail)
        raise BadQuery(error.field.removesuffix("[0].text"), None, detail) from None


PAGE = PageContent(params=PreflightView, render=render)
