"""Settings from `VMSIZES_…` environment variables and an optional `.env` file; nothing else reads them."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from app import shipped_folder
from app.api_keys import ApiKey, parse_api_keys
from app.networks import network_hint
from app.telemetry.logs import LogFormat, LogLevel

PROJECT = Path(__file__).resolve().parents[1]
MAX_WORKERS = 64


class BadEnvFile(Exception):
    """The `.env` file is a pipe: to open it would wait for who writes to it."""


def _check_url(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:  # as of http://[
        parts = urlsplit("")
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or " " in text):
        raise PydanticCustomError("url", "must be a URL: https://HOST/PATH")
    return text


def check_public_url(text: str) -> str:
    """Return the URL of a service or a site; raises PydanticCustomError for one that no path can be added to."""
    _check_url(text)
    if "?" in text or "#" in text:
        raise PydanticCustomError("url", "must be a URL without ? and #: https://HOST/PATH")
    return text


WebUrl = Annotated[str, AfterValidator(_check_url)]
PublicUrl = Annotated[str, AfterValidator(check_public_url)]


class Settings(BaseSettings):
    """Every setting with its default. Raises BadEnvFile for a `.env` that is a pipe."""

    model_config = SettingsConfigDict(
        env_prefix="VMSIZES_",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
    )

    def __new__(cls, **values: Any) -> Self:
        """Check the file before pydantic opens it."""
        file = values.get("_env_file", cls.model_config.get("env_file"))
        if isinstance(file, str | Path) and Path(file).is_fifo():
            raise BadEnvFile(f"{file}: is a pipe; give a file")
        return super().__new__(cls)

    database_url: str = Field(
        default="sqlite:///vmsizes.db",
        description="Where the catalog lives: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
    )
    host: str = Field(default="127.0.0.1", description="The address that `vmsizes serve` listens on.")
    port: int = Field(default=8000, ge=1, le=65535, description="The port that `vmsizes serve` listens on.")
    workers: int = Field(
        default=1, ge=1, le=MAX_WORKERS, description="How many worker processes to run; one per core is good."
    )
    max_connections: int = Field(
        default=2000, ge=16, le=100_000, description="How many connections a worker has at most; more are refused."
    )
    keep_alive_seconds: float = Field(
        default=75, ge=1, le=3_600, description="How long a connection stays open without a request, seconds."
    )
    header_seconds: float = Field(
        default=10, ge=1, le=600, description="How long a client may take to send the headers of a request, seconds."
    )
    body_seconds: float = Field(
        default=30, ge=1, le=3_600, description="How long a client may take to send the body of a request, seconds."
    )
    write_seconds: float = Field(
        default=30,
        ge=1,
        le=3_600,
        description="A client that takes nothing of a response for so long is disconnected, seconds.",
    )
    max_requests: int = Field(
        default=256, ge=1, le=10_000, description="How many answers a worker computes at once; more are refused."
    )
    request_seconds: float = Field(
        default=30, ge=1, le=3_600, description="How long an answer may take to be computed, seconds."
    )
    export_seconds: float = Field(
        default=900, ge=1, le=86_400, description="How long an export may take, with its client's reading, seconds."
    )
    shutdown_seconds: float = Field(
        default=7, ge=0, le=3_600, description="How long a shutdown waits for requests in progress, seconds."
    )
    cache_mib: int = Field(
        default=24, ge=0, le=1_048_576, description="How much memory a worker may use to cache responses, MiB."
    )
    max_age_seconds: int = Field(
        default=0,
        ge=0,
        le=31_536_000,
        description="How long browsers and CDNs may reuse a response without revalidation, seconds; 0: never.",
    )
    exports_mib: int = Field(
        default=1024, ge=0, le=1_048_576, description="How much disk a worker may use to cache Parquet files, MiB."
    )
    seeds: Path = Field(default=shipped_folder("seeds"), description="The folder that `vmsizes ingest seeds` reads.")
    clouds: str = Field(
        default="",
        description="The clouds that `vmsizes ingest seeds` reads, separated by commas: azure,aws,gcp. Empty: all.",
    )
    feeds: Path | None = Field(
        default=None,
        description="The folder for pages that `vmsizes refresh` fetches. Unset: beside the database.",
    )
    azure_prices_url: WebUrl = Field(
        default="",
        description="A copy of the Azure Retail Prices API for `vmsizes refresh`. Empty: the public one.",
    )
    azure_subscription: str = Field(
        default="", description="The Azure subscription whose sizes `vmsizes refresh` reads. Empty: none."
    )
    azure_token: SecretStr = Field(
        default=SecretStr(""), description="A bearer token of Azure Resource Manager, for `azure_subscription`."
    )
    gcp_key: SecretStr = Field(
        default=SecretStr(""), description="A key of Google's Cloud Billing API, for `vmsizes refresh gcp-prices`."
    )
    azure_docs: Path | None = Field(
        default=None, description="A checkout of Azure's documentation that `vmsizes refresh` reads. Unset: none."
    )
    exchange_rates_url: WebUrl = Field(
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
        description="Prices or exchange rates older than this many days are called stale.",
    )
    mcp: bool = Field(default=True, description="Whether the service has tools for agents (MCP) at /mcp.")
    log_format: LogFormat = Field(default="text", description="How log lines are written: text or json.")
    log_level: LogLevel = Field(default="info", description="The least level of log lines: debug to error.")
    access_log: Literal["off", "errors", "misses", "all"] = Field(
        default="errors",
        description="Which requests are logged: off, errors (status 5xx), misses (not from the cache) or all.",
    )
    otlp_endpoint: WebUrl = Field(
        default="",
        description="Where traces are sent by OTLP, with `vmsizes[otel]`: http://collector:4318. Empty: nowhere.",
    )
    counters_folder: Path | None = Field(
        default=None,
        description="The folder in which workers share what /metrics reports. Unset: `vmsizes serve` makes one.",
    )
    webhook_allowed_networks: str = Field(
        default="",
        description="Hosts and networks, separated by commas, that webhooks may be at although they are not public.",
    )
    public_url: PublicUrl = Field(
        default="",
        description="The URL at which clients reach the service, for the OpenAPI document and links. Empty: relative.",
    )
    hsts_seconds: int = Field(
        default=0,
        ge=0,
        le=63_072_000,
        description="How long browsers reach the service by HTTPS only, seconds; where it is behind TLS. 0: not said.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses and networks, separated by commas, whose X-Forwarded-For is trusted. Empty: none.",
    )
    api_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Keys, or NAME:SHA256 of keys, separated by commas; requests need one of them. Empty: none needed.",
    )
    api_keys_file: Path | None = Field(
        default=None, description="A file with a line NAME:SHA256 for each API key, beside `api_keys`. Unset: none."
    )
    rate_limit_requests: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="How many requests a client may send to a worker in `rate_limit_window_seconds`; 0: any number.",
    )
    rate_limit_window_seconds: int = Field(
        default=60, ge=1, le=86_400, description="The time in which `rate_limit_requests` are counted, seconds."
    )
    reader_role: str = Field(
        default="",
        max_length=63,
        description="A PostgreSQL role that `vmsizes migrate` makes and lets read, for the service. Empty: none.",
    )
    reader_password: SecretStr = Field(
        default=SecretStr(""), description="The password that `vmsizes migrate` gives `reader_role`. Empty: unchanged."
    )

    def load_api_keys(self) -> tuple[ApiKey, ...]:
        """Return the keys of both settings, the file read again."""
        return (*_parse_keys(self.api_keys.get_secret_value()), *_read_keys(self.api_keys_file))

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: SecretStr) -> SecretStr:
        """Refuse what is no key when the service starts."""
        try:
            _parse_keys(keys.get_secret_value())
        except ValueError as error:
            raise PydanticCustomError("api_keys", "{detail}", {"detail": str(error)}) from None
        return keys

    @field_validator("api_keys_file")
    @classmethod
    def _check_key_file(cls, file: Path | None) -> Path | None:
        """Refuse a file that cannot be read, or has no key: without one everybody could use the service."""
        try:
            keys = _read_keys(file)
        except (OSError, ValueError) as error:
            reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else str(error)
            raise PydanticCustomError("api_keys_file", "{detail}", {"detail": reason}) from None
        if file is not None and not keys:
            raise PydanticCustomError("api_keys_file", "has no key in it")
        return file

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, text: str) -> str:
        """Refuse what uvicorn would silently compare as a word: `*` and host names."""
        networks = [part.strip() for part in text.split(",") if part.strip()]
        for network in networks:
            try:
                ip_network(network)
            except ValueError:
                raise PydanticCustomError(
                    "network",
                    "{network} {detail}",
                    {
                        "network": network,
                        "detail": network_hint(network) or "is not an IP address or network (10.0.0.0/8)",
                    },
                ) from None
        return ",".join(networks)


_MAX_KEY_FILE_BYTES = 1_000_000


def _parse_keys(text: str) -> tuple[ApiKey, ...]:
    return parse_api_keys(text.split(","))


def _read_keys(file: Path | None) -> tuple[ApiKey, ...]:
    if file is None:
        return ()
    if not file.is_file():
        raise ValueError("is not a file")
    with file.open("rb") as opened:
        data = opened.read(_MAX_KEY_FILE_BYTES + 1)
    if len(data) > _MAX_KEY_FILE_BYTES:
        raise ValueError(f"is longer than {_MAX_KEY_FILE_BYTES:,} bytes")
    return parse_api_keys(data.decode().splitlines())
