"""The body of POST /preflight."""

from typing import Annotated

from pydantic import Field

from app.catalog.queries.params import PlainText, optional, several
from app.schemas.bodies import In

MAX_ITEMS = 1000


class QuotaUsageIn(In):
    """The quotas of a region, as the vendor's command prints them."""

    text: str = Field(
        min_length=1,
        description="What `az vm list-usage`, `aws service-quotas list-service-quotas --service-code ec2` or "
        "`gcloud compute regions describe` prints as JSON; of Google also `project-info describe`, for all regions.",
    )
    region: PlainText | None = optional(
        "The region, which Azure's command does not print; default: the body's `region`."
    )


class PreflightIn(In):
    """A plan of VMs, and what is left of quotas; nothing of it is stored."""

    plan: str = Field(
        min_length=1,
        description="The text of a plan: CSV with the columns size and region, and optionally count, purchase (spot) "
        "and id; a JSON list of objects with these; or what `terraform show -json` prints of a plan. At most 1,000 "
        "lines.",
    )
    usage: Annotated[tuple[QuotaUsageIn, ...], Field(max_length=100)] = several(
        "The quotas of each region. What no quota is given for is unknown."
    )
    skus: str | None = Field(
        default=None,
        min_length=1,
        description="What `az vm list-skus --all` prints as JSON: which sizes a subscription may not use where.",
    )
    region: PlainText | None = optional("The region of VMs of Terraform, and of quotas, that name none.")
