"""The response of POST /preflight."""

from typing import Annotated

from pydantic import Field

from app.schemas.sizes import Out

Verdict = Annotated[str, Field(description="fits, missing or unknown; of an item also error. Extensible.")]


class QuotaOut(Out):
    """A quota that the plan needs."""

    provider: str = Field(description="Whose quota it is: azure, aws or gcp. Extensible.")
    region: str = Field(
        description="Code of the region; `global` for what Google Cloud allows in all regions together."
    )
    quota: str | None = Field(description="Its name or code, as the vendor's commands take it; null is unknown.")
    title: str = Field(description="What the vendor calls it, or why it is unknown.")
    needed: int | None = Field(description="What the plan adds at most: vCPUs, VMs or GPUs. null is unknown.")
    needed_at_least: int = Field(
        description="What it adds at least: of a constrained size no source says whether its own vCPUs count or those "
        "of its parent."
    )
    used: int | None = Field(description="What is in use; null is unknown.")
    limit: int | None = Field(description="The limit; null is unknown.")
    missing: int | None = Field(description="By how much used and needed exceed the limit; null is unknown.")
    verdict: Verdict
    sizes: list[str] = Field(description="The sizes of the plan that count towards it.")
    request: str | None = Field(description="A text to ask for more, where something is missing.")
    command: str | None = Field(description="The vendor's command that asks for it, where there is one.")


class PreflightItemOut(Out):
    """The answer to one line of the plan."""

    index: int = Field(description="Place of the line in the plan, from 0.")
    id: str | None = Field(description="The id of the line; of Terraform the address of the resource.")
    size: str | None = Field(description="Name of the size; as it was sent where the catalog does not have it.")
    region: str | None = Field(description="Code of the region; as it was sent where the catalog does not have it.")
    count: int | None = Field(description="Number of VMs.")
    spot: bool | None = Field(description="Whether they are spot VMs, which have quotas of their own.")
    verdict: Verdict
    offered: bool | None = Field(description="Whether a source lists the size in the region; null is unknown.")
    restriction: str | None = Field(description="Why the subscription may not use it there, as `az vm list-skus` says.")
    closed_zones: list[str] = Field(description="The zones in which the subscription may not use it.")
    fits_in: list[str] = Field(description="Other regions in `usage` that offer the size and have quota for this line.")
    details: list[str] = Field(description="What is wrong or unknown, in words.")


class PreflightOut(Out):
    """Whether a plan fits into quotas."""

    verdict: str = Field(
        description="fits; missing, where a quota or a right is; unknown, where something is that could be; error, "
        "where the catalog does not have a size or a region. Extensible."
    )
    quotas: list[QuotaOut] = Field(description="The quotas that the plan needs: those that lack something first.")
    items: list[PreflightItemOut] = Field(description="One for each line, in the order of the plan.")
