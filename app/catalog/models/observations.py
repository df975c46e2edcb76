"""The table of observations: capacity as vendors reported it to the holders of API keys; no part of the catalog."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from app.catalog.column_types import BYTEWISE, UtcDateTime


class Observation(SQLModel, table=True):
    """What a vendor reported about a size in a place, to the holder of one API key: when, and until when it counts."""

    scope: str = Field(sa_type=BYTEWISE, primary_key=True, description="the name of the holder's API key")
    source: str = Field(sa_type=BYTEWISE, primary_key=True, description="what it was taken in as: the name of a file")
    position: int = Field(primary_key=True)
    size_key: str = Field(sa_type=BYTEWISE, index=True, description="of the catalog, or as the vendor writes the name")
    kind: str = Field(sa_type=BYTEWISE, description="spot_placement_score, spot_eviction_rate, …")
    value: str = Field(sa_type=BYTEWISE, description="as the vendor writes it")
    region: str = Field(sa_type=BYTEWISE)
    zone: str | None = Field(sa_type=BYTEWISE)
    note: str | None = Field(sa_type=BYTEWISE, description="what was asked for, if the answer depends on it")
    observed_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
