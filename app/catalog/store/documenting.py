"""The document of each size, written anew where the size or its source is another."""

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from app.catalog.docs import size_doc
from app.catalog.models import Size, SizeDoc, Source
from app.catalog.store.touching import TOUCHED
from app.catalog.store.upsert import save_rows
from app.catalog.tables import table_of

_AT_ONCE = 1_000


def save_docs(session: Session, *, touched: bool) -> None:
    """Write the documents of all sizes, or of those that are touched and rewritten."""
    size, source = table_of(Size), table_of(Source)
    some = size.c.key.in_(select(TOUCHED.c.size_key).where(TOUCHED.c.rewritten)) if touched else true()
    query = select(*size.columns, source.c.url.label("source_url")).join_from(size, source, isouter=True).where(some)
    result = session.execute(query, execution_options={"yield_per": _AT_ONCE})
    for rows in result.mappings().partitions():
        docs = ({"size_key": row["key"], "doc": size_doc(dict(row), row["source_url"])} for row in rows)
        save_rows(session, SizeDoc, docs)
