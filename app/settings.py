"""Settings from `VMSIZES_…` environment variables and an optional `.env` file; nothing else reads them."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

PROJECT = Path(__file__).resolve().parents[1]


class Settings(BaseSettings):
    """Every setting with its default."""

    model_config = SettingsConfigDict(
        env_prefix="VMSIZES_", env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True
    )

    database_url: str = Field(
        default="sqlite:///vmsizes.db",
        description="Where the catalog lives: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
    )
    host: str = Field(default="127.0.0.1", description="The address that `vmsizes serve` listens on.")
    port: int = Field(default=8000, ge=1, le=65535, description="The port that `vmsizes serve` listens on.")
    workers: int = Field(default=1, ge=1, le=64, description="How many worker processes to run; one per core is good.")
    cache_mib: int = Field(default=32, ge=0, description="How much memory a worker may use to cache responses, MiB.")
    max_age_seconds: int = Field(
        default=0,
        ge=0,
        le=31_536_000,
        description="How long browsers and CDNs may reuse a response without revalidation, seconds; 0: never.",
    )
    exports_mib: int = Field(
        default=1024, ge=0, description="How much disk a worker may use to cache Parquet files, MiB."
    )
    seeds: Path = Field(default=PROJECT / "seeds", description="The folder that `vmsizes ingest seeds` reads.")
    feeds: Path | None = Field(
        default=None,
        description="The folder for pages that `vmsizes refresh` fetches. Unset: beside the database.",
    )
    azure_prices_url: str = Field(
        default="",
        description="A copy of the Azure Retail Prices API for `vmsizes refresh`. Empty: the public one.",
    )
    azure_subscription: str = Field(
        default="", description="The Azure subscription whose sizes `vmsizes refresh` reads. Empty: none."
    )
    azure_token: SecretStr = Field(
        default=SecretStr(""), description="A bearer token of Azure Resource Manager, for `azure_subscription`."
    )
    azure_docs: Path | None = Field(
        default=None, description="A checkout of Azure's documentation that `vmsizes refresh` reads. Unset: none."
    )
    exchange_rates_url: str = Field(
        default="",
        description="A copy of the European Central Bank's eurofxref-hist.zip, for `vmsizes refresh`. Empty: its own.",
    )
    wait_seconds: float = Field(
        default=300,
        ge=0,
        le=86_400,
        description="How long a command that writes waits for another one to end, seconds; 0: not at all.",
    )
    stale_after_days: int = Field(
        default=7,
        ge=0,
        le=36_500,
        description="Prices or exchange rates that are older than so many days are called stale.",
    )
    mcp: bool = Field(default=True, description="Whether the service has tools for agents (MCP) at /mcp.")
    webhook_allowed_networks: str = Field(
        default="",
        description="Hosts and networks, separated by commas, that webhooks may be at although they are not public.",
    )
    public_url: str = Field(
        default="",
        description="The URL at which clients reach the service, for the OpenAPI document and links. Empty: relative.",
    )
