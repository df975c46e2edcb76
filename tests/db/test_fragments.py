from sqlalchemy import Integer, bindparam, column, literal, or_, select, table, true

from app.db.fragments import Fragment, Source, StatementText, order_text, select_text

SHIP = table("ship", column("mass", Integer), column("crew", Integer))
PORT = table("port", column("ship", Integer))


def test_constants_of_two_fragments_keep_their_values() -> None:
    text = StatementText("sqlite")
    light, few = (Fragment(each < literal(limit), SHIP) for each, limit in ((SHIP.c.mass, 100), (SHIP.c.crew, 5)))
    where = text.conditions([light, few])
    compiled = text.compiled(select_text(["*"], text.sql(Source(select(SHIP))), where=where))
    for name, value in compiled.constants.items():
        compiled_sql = compiled.sql.replace(f":{name}", str(value))
        compiled = text.compiled(compiled_sql)
    assert compiled.sql == "SELECT * FROM ship WHERE ship.mass < 100 AND ship.crew < 5"


def test_alternatives_are_in_brackets_and_what_always_holds_is_left_out() -> None:
    text = StatementText("postgresql")
    either = Fragment(or_(SHIP.c.mass < bindparam("mass"), SHIP.c.crew.is_(None)), SHIP)
    assert text.conditions([Fragment(true(), SHIP), either]) == ["(ship.mass < %(mass)s::INTEGER OR ship.crew IS NULL)"]


def test_a_subquery_refers_to_the_tables_of_the_statement() -> None:
    crew_of = select(SHIP.c.crew).where(SHIP.c.mass == PORT.c.ship).scalar_subquery()
    within = PORT.join(SHIP, SHIP.c.mass == PORT.c.ship)
    busy = Fragment(select(PORT.c.ship).where(PORT.c.ship == SHIP.c.crew).correlate(SHIP).exists(), SHIP)
    assert Fragment(crew_of, PORT).text_for("sqlite").sql.count("port") == 1
    assert "FROM port \nWHERE" in busy.text_for("sqlite").sql
    assert Source(select(SHIP).select_from(within)).text_for("sqlite").sql == "port JOIN ship ON ship.mass = port.ship"


def test_an_order_has_unknown_values_last() -> None:
    assert order_text("mass", descending=True, nullable=True) == "mass IS NULL, mass DESC"
    assert order_text("mass", descending=False, nullable=False) == "mass ASC"
