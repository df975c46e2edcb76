"""Migrations create exactly the tables of the models on every database, and downgrades drop them."""

import threading
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine

import app.catalog.models.observations  # its table is no content of the catalog
import app.catalog.models.webhooks  # noqa: F401  # their tables are no content of the catalog
from app.catalog.column_types import BYTEWISE
from app.catalog.models import Size
from app.db import migrations
from app.db.writing import begin_writing
from tests.databases import is_migrated, schema_of

TABLES = Size.metadata


def tables_of(engine: Engine) -> set[str]:
    return set(sa.inspect(engine).get_table_names())


def test_an_empty_database_is_at_no_revision(empty_engine: Engine) -> None:
    assert schema_of(empty_engine) is None
    assert not is_migrated(empty_engine)


def test_upgrading_an_empty_database_makes_every_table(empty_engine: Engine) -> None:
    migrations.upgrade(empty_engine)
    assert tables_of(empty_engine) == {*TABLES.tables, "alembic_version"}
    assert is_migrated(empty_engine)


@pytest.mark.filterwarnings("ignore:Computed default:UserWarning")  # PostgreSQL spells the expression its own way
def test_the_migrated_schema_differs_in_nothing_from_the_models(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, TABLES) == []


def test_the_comparison_would_notice_a_difference(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("drop index ix_size_vcpus")
        connection.exec_driver_sql("alter table size add column shoes integer")
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert {difference[0] for difference in compare_metadata(context, TABLES)} == {"add_index", "remove_column"}


def test_upgrading_twice_changes_nothing(engine: Engine) -> None:
    before = schema_of(engine)
    migrations.upgrade(engine)
    assert schema_of(engine) == before


@pytest.mark.takes_seconds
def test_downgrading_to_base_leaves_no_table_and_upgrading_brings_them_back(engine: Engine) -> None:
    migrations.downgrade(engine, "base")
    assert tables_of(engine) == {"alembic_version"}
    assert schema_of(engine) is None
    migrations.upgrade(engine)
    assert tables_of(engine) == {*TABLES.tables, "alembic_version"}


def test_a_migration_that_fails_leaves_nothing_behind(empty_engine: Engine) -> None:
    with empty_engine.begin() as connection:
        connection.exec_driver_sql("create table price (in_the_way integer)")
    with pytest.raises(sa.exc.DBAPIError, match="already exists"):
        migrations.upgrade(empty_engine)
    assert tables_of(empty_engine) == {"price"}


@pytest.mark.takes_seconds
def test_two_migrations_at_once_wait_for_each_other(empty_engine: Engine) -> None:
    failures: list[Exception] = []

    def migrate() -> None:
        try:
            migrations.upgrade(empty_engine)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test reports it
            failures.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert is_migrated(empty_engine)


def test_foreign_keys_are_enforced_again_after_a_migration(empty_engine: Engine) -> None:
    migrations.upgrade(empty_engine)
    orphan = "insert into region (code, name, source_id) values ('x', 'X', 'no such source')"
    with pytest.raises(sa.exc.IntegrityError), empty_engine.begin() as connection:
        connection.exec_driver_sql(orphan)


def test_a_migration_that_breaks_a_reference_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    orphan = "insert into region (code, name, source_id) values ('x', 'X', 'no such source')"

    def begin_with_an_orphan(connection: sa.Connection, **options: Any) -> None:
        begin_writing(connection, **options)
        connection.exec_driver_sql(orphan)

    monkeypatch.setattr(migrations, "begin_writing", begin_with_an_orphan)
    with pytest.raises((RuntimeError, sa.exc.IntegrityError), match="region"):
        migrations.upgrade(engine)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from region").scalar() == 0


def test_every_constraint_is_named_by_the_convention(engine: Engine) -> None:
    inspector = sa.inspect(engine)
    for table in TABLES.tables:
        assert inspector.get_pk_constraint(table)["name"] == f"pk_{table}"
        for key in inspector.get_foreign_keys(table):
            columns = "_".join(key["constrained_columns"])
            assert key["name"] == f"fk_{table}_{columns}_{key['referred_table']}"
        for unique in inspector.get_unique_constraints(table):
            assert unique["name"] == f"uq_{table}_{'_'.join(unique['column_names'])}"
        for index in inspector.get_indexes(table):
            assert str(index["name"]).startswith((f"ix_{table}_", f"uq_{table}_"))


def test_text_is_sorted_by_code_points_on_every_database(engine: Engine) -> None:
    names = ["a", "B", "_", "Z", "é", "z", "Ä"]
    values = ", ".join(f"('{name}', '{name}', 'third_party', '{name}', '')" for name in names)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"insert into source (id, title, kind, publisher, sha256) values {values}")
        found = connection.execute(sa.text("select id from source order by id")).scalars().all()
    assert found == sorted(names)


def test_every_text_column_is_collated_bytewise(engine: Engine) -> None:
    bytewise = {"postgresql": "C", "sqlite": None}[engine.dialect.name]  # SQLite does so unless a column says otherwise
    inspector = sa.inspect(engine)
    for table in TABLES.tables.values():
        of_database = {column["name"]: column["type"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.type is BYTEWISE:
                found = of_database[column.name]
                assert isinstance(found, sa.String)
                assert found.collation == bytewise, f"{table.name}.{column.name}"


@pytest.mark.takes_seconds
def test_prices_outlive_the_change_of_their_table(empty_engine: Engine) -> None:
    migrations.upgrade(empty_engine, "0001")
    with empty_engine.begin() as connection:
        size = "size (key, name, provider, verified, disputed, disputed_fields, search_text)"
        for statement in (
            "insert into source (id, title, publisher, kind, sha256) values ('s', 't', 'p', 'third_party', '0')",
            "insert into region (code, name, source_id) values ('eastus', 'East US', 's')",
            f"insert into {size} values ('x1', 'X1', 'azure', true, false, '', '')",
            "insert into price values ('x1', 'eastus', 'linux', 'spot', '2026-01-01', 1.5, false, 's')",
        ):
            connection.exec_driver_sql(statement)
    migrations.upgrade(empty_engine)
    migrations.downgrade(empty_engine, "0001")
    migrations.upgrade(empty_engine)
    with empty_engine.connect() as connection:
        (row,) = connection.exec_driver_sql("select size_key, region, nano_usd_per_hour, seen_until from price")
        assert tuple(row[:2]) == ("x1", "eastus")
        assert (row[2], str(row[3])) == (1_500_000_000, "2026-01-01")


def test_prices_keep_their_file_while_it_is_numbered(empty_engine: Engine) -> None:
    migrations.upgrade(empty_engine, "0029")
    size = "size (key, name, provider, verified, disputed, disputed_fields, search_text)"
    price = "'eastus', 'linux', 'spot', '2026-01-01', 's', '2026-01-01', '2026-01-01', 1, false"
    with empty_engine.begin() as connection:
        for statement in (
            "insert into source (id, title, publisher, kind, sha256) values ('s', 't', 'p', 'third_party', '0')",
            "insert into region (code, name, source_id) values ('eastus', 'East US', 's')",
            f"insert into {size} values ('x1', 'X1', 'azure', true, false, '', '')",
            f"insert into {size} values ('x2', 'X2', 'azure', true, false, '', '')",
            f"insert into {size} values ('x3', 'X3', 'azure', true, false, '', '')",
            f"insert into price values ('x1', {price}, 'b.csv')",
            f"insert into price values ('x2', {price}, 'a.csv')",
            f"insert into price values ('x3', {price}, null)",
        ):
            connection.exec_driver_sql(statement)
    files = [("x1", "b.csv"), ("x2", "a.csv"), ("x3", None)]
    migrations.upgrade(empty_engine, "0030")
    with empty_engine.connect() as connection:
        numbered = "select size_key, file from price left join price_file on id = file_id order by size_key"
        assert [tuple(row) for row in connection.exec_driver_sql(numbered)] == files
    migrations.downgrade(empty_engine, "0029")
    with empty_engine.connect() as connection:
        stored = connection.exec_driver_sql("select size_key, file from price order by size_key")
        assert [tuple(row) for row in stored] == files


def test_prices_of_offers_may_be_null_where_no_index_is_by_them(empty_engine: Engine) -> None:
    def nullable() -> set[str]:
        columns = sa.inspect(empty_engine).get_columns("offer")
        return {one["name"] for one in columns if one["name"].endswith("rank_usd") and one["nullable"]}

    unindexed = {f"{term}_rank_usd" for term in ("reserved_1y", "reserved_3y", "savings_1y", "savings_3y")}
    migrations.upgrade(empty_engine, "0031")
    assert nullable() == unindexed
    indexes = {one["name"] for one in sa.inspect(empty_engine).get_indexes("offer")}
    assert indexes == {"ix_offer_on_demand", "ix_offer_spot", "ix_offer_gpu"}
    assert sa.inspect(empty_engine).get_foreign_keys("offer") == []
    migrations.downgrade(empty_engine, "0030")
    assert nullable() == set()
    checked = {one["referred_table"] for one in sa.inspect(empty_engine).get_foreign_keys("offer")}
    assert checked == {"size", "region"}
    assert {one["name"] for one in sa.inspect(empty_engine).get_indexes("offer")} == indexes


def test_days_are_declared_as_texts_on_sqlite_and_stay_what_they_are(empty_engine: Engine) -> None:
    def declared() -> str:
        with empty_engine.connect() as connection:
            columns = connection.exec_driver_sql("pragma table_info(source)").mappings()
            return str(next(column["type"] for column in columns if column["name"] == "published_on"))

    migrations.upgrade(empty_engine)
    values = ", ".join(f"('{day}', 't', 'p', 'third_party', '0', '{day}')" for day in ("2026-01-30", "2026-01-31"))
    with empty_engine.begin() as connection:
        columns = "id, title, publisher, kind, sha256, published_on"
        connection.exec_driver_sql(f"insert into source ({columns}) values {values}")
    for migrate, revision, kind in (
        (migrations.downgrade, "0031", "DATE"),
        (migrations.upgrade, "0032", "DATE_CHAR"),
    ):
        migrate(empty_engine, revision)
        with empty_engine.connect() as connection:
            later = connection.exec_driver_sql("select id, published_on from source where published_on > '2026-01-30'")
            assert [(id_, str(day)) for id_, day in later] == [("2026-01-31", "2026-01-31")]
            if empty_engine.dialect.name == "sqlite":
                assert connection.exec_driver_sql("pragma integrity_check").scalar() == "ok"
                assert declared() == kind
