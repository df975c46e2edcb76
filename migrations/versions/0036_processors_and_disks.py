"""Add who makes the processor, CPU credits, local NVMe, disk controllers and trusted launch of a size.

Facts are resolved anew at the next ingest; size JSON is left empty: `vmsizes migrate` rebuilds it.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_COLUMNS: dict[str, sa.types.TypeEngine[Any]] = {
    "cpu_vendor": BYTEWISE,
    "burstable": sa.Boolean(),
    "cpu_baseline_percent": sa.Float(),
    "cpu_credits_per_hour": sa.Integer(),
    "local_nvme": sa.Boolean(),
    "disk_controller": BYTEWISE,
    "trusted_launch": sa.Boolean(),
}


def upgrade() -> None:
    op.execute("delete from size_doc")
    for name, kind in _COLUMNS.items():
        op.add_column("size", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    op.execute("delete from size_doc")
    for name in reversed(_COLUMNS):
        op.drop_column("size", name)
