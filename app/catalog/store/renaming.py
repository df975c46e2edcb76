"""What was kept under a name that turned out to be an alias goes to the size that it means."""

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.catalog.models import Offer, Price, Size, SizeDoc
from app.catalog.resolution.subjects import Subjects
from app.catalog.store.rows import PRICE_KEY
from app.catalog.store.upsert import Change
from app.catalog.tables import table_of


def merge_aliases(session: Session, subjects: Subjects) -> Change:
    """Move the prices of sizes that are only aliases, and remove those sizes; offers are derived anew afterwards.

    Where both names have a price for the same place and day, the size's own stands. Its facts were moved before.
    """
    price, size = table_of(Price), table_of(Size)
    kept = set(session.execute(select(size.c.key)).scalars())
    merged = {alias: key for alias, key in subjects.sizes.items() if alias in kept and key in kept}
    for alias, key in merged.items():
        rows = [dict(row) for row in session.execute(select(price).where(price.c.size_key == alias)).mappings()]
        own = {
            tuple(row[name] for name in PRICE_KEY)
            for row in session.execute(select(price).where(price.c.size_key == key)).mappings()
        }
        moved = [row | {"size_key": key} for row in rows]
        new = [row for row in moved if tuple(row[name] for name in PRICE_KEY) not in own]
        for table in (price, table_of(Offer), table_of(SizeDoc)):
            session.execute(delete(table).where(table.c.size_key == alias))
        if new:
            session.execute(insert(price), new)
        session.execute(delete(size).where(size.c.key == alias))
    return Change(removed=len(merged))
