"""The load and the targets of a service, in the bodies of POST /estimate and POST /fit."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.schemas.bodies import In, NonNegative, Positive, Sequences, Tokens, contradiction, require_exactly_one

Confidence = Literal["p50", "p80", "p95"]
Rate = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]


class ServingIn(In):
    """The requests that a service gets, and how fast it must answer: exactly one of the three rates."""

    input_tokens: Tokens = Field(description="Tokens of a prompt.")
    output_tokens: Tokens = Field(description="Tokens that are generated for a prompt.")
    requests_per_second: Rate | None = Field(default=None, description="Requests a second, on average.")
    requests_per_day: Rate | None = Field(default=None, description="Requests a day, on average.")
    users: Sequences | None = Field(
        default=None, description="Users who each send a request and, after think_time_s, the next; on average."
    )
    think_time_s: Annotated[NonNegative, Field(le=1e6)] | None = Field(
        default=None, description="What a user waits after an answer, s; default 0: a request is always open."
    )
    ttft_ms: Positive | None = Field(default=None, description="The longest expected time to the first token, ms.")
    tpot_ms: Positive | None = Field(
        default=None, description="The longest expected time per output token after the first, ms."
    )
    confidence: Confidence | None = Field(
        default=None,
        description="How sure it must be that the targets are met: p50 by the middle of the estimates, p80 and p95 by "
        "what 80 and 95 % of measured runs are within. Default: by the middle, and where one request alone misses a "
        "target by the middle, it is taken where the low end meets it, with a warning.",
    )
    prefix_cache_hit: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="Share of a prompt that is cached and not read again; default 0."
    )
    peak_to_mean: Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)] | None = Field(
        default=None, description="Load of the busiest time over the average; default 1."
    )
    disaggregated: bool = Field(
        default=False,
        description="Whether replicas of their own read the prompts, and move the cache to those that generate.",
    )

    @model_validator(mode="after")
    def _one_rate(self) -> Self:
        require_exactly_one(self, "requests_per_second", "requests_per_day", "users")
        if self.think_time_s is not None and self.users is None:
            raise contradiction("think_time_s is of users, and a rate of requests is given")
        return self
