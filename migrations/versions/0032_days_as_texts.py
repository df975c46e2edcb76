"""Declare days as texts on SQLite, which tried to convert each to a number whenever it was compared or stored.

The values are texts already, so only the declarations are written again: the way that SQLite's documentation of ALTER
TABLE gives for changes that do not affect what is stored. Migrations before this one declare new tables so, too.
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _declare_again(" DATE", " DATE_CHAR")


def downgrade() -> None:
    _declare_again(" DATE_CHAR", " DATE")


def _declare_again(old: str, new: str) -> None:
    """Give columns of one type another one: types are followed by a comma, a line end or a space (NOT NULL)."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    version = connection.exec_driver_sql("pragma schema_version").scalar_one()
    connection.exec_driver_sql("pragma writable_schema = on")
    for end in (",", "\n", " "):
        replaced = "update sqlite_master set sql = replace(sql, ?, ?) where type = 'table' and instr(sql, ?)"
        connection.exec_driver_sql(replaced, (old + end, new + end, old + end))
    connection.exec_driver_sql(f"pragma schema_version = {version + 1}")
    connection.exec_driver_sql("pragma writable_schema = reset")
