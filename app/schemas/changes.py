"""The list of change events."""

from datetime import date, datetime

from pydantic import Field

from app.catalog.changes import CHANGE_KINDS
from app.schemas.sizes import Out, PageOut


class ChangeOut(Out):
    """An event: what a revision changed of a size, one of its accepted values, or one of its prices in force."""

    id: int = Field(description="Its number, which grows from event to event.")
    revision: int = Field(description="The number of the revision in GET /revisions.")
    at: datetime = Field(description="When the revision was made, in UTC.")
    kind: str = Field(description=f"What happened: {', '.join(CHANGE_KINDS)}. Extensible.")
    size: str = Field(description="The name of the size, which may be gone.")
    region: str | None = Field(description="The region of the price; null where the event is about no price.")
    os: str | None = Field(description="The operating system of the price.")
    purchase: str | None = Field(description="The purchase model of the price.")
    field: str | None = Field(description="The field of the value or the dispute.")
    old: str | None = Field(description="The price in USD an hour, or the value, that was; null: none, or unknown.")
    new: str | None = Field(description="The price in USD an hour, or the value, that is now; null: none, or unknown.")
    percent: float | None = Field(description="By how much the price rose, or fell (negative), of the old one.")
    valid_from: date | None = Field(description="The first day on which the new price was observed.")
    source_id: str | None = Field(description="Id of the source of the new price or value.")


class ChangePage(PageOut):
    """Events, the oldest first."""

    items: list[ChangeOut] = Field(description="The events of this page.")
    revision: int = Field(description="The newest revision: send it as `since` to get what comes later.")
    tracked_since: datetime = Field(description="Changes are known from here on, in UTC.")
