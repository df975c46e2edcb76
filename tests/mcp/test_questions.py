"""300 questions: a program that maps each to one call gets the answer that plain SQL gives."""

from collections import Counter

import pytest
from mcp import Client

from app.db.engines import make_engine
from app.mcp.catalog import CatalogReader
from tests.conftest import TODAY
from tests.mcp.asking import with_client
from tests.mcp.questions import TOTAL, Question, agrees, make_questions, score


@pytest.fixture(scope="module")
def questions(seeded_url: str) -> list[Question]:
    engine = make_engine(seeded_url)
    with engine.connect() as connection:
        found = make_questions(connection, TODAY.isoformat())
    engine.dispose()
    return found


def test_there_are_300_questions_for_every_tool(questions: list[Question]) -> None:
    assert len(questions) == TOTAL
    assert len({question.text for question in questions}) == TOTAL
    by_tool = Counter(question.tool for question in questions)
    assert set(by_tool) == {"find_sizes", "explain_size", "fit_workload", "compare_sizes", "price_history"}


@pytest.mark.takes_seconds
def test_every_question_is_answered_as_by_sql(catalog: CatalogReader, questions: list[Question]) -> None:
    async def ask_all(client: Client) -> list[str]:
        wrong = []
        for question in questions:
            result = await client.call_tool(question.tool, dict(question.arguments))
            said = str(result.content) if result.is_error else question.read(result.structured_content)
            if not agrees(said, question.answer):
                wrong.append(f"{question.id} {question.text} {question.arguments}: {said!r}, not {question.answer!r}")
        return wrong

    assert with_client(catalog, ask_all) == []


def test_answers_of_an_agent_are_scored(questions: list[Question]) -> None:
    right = [{"id": question.id, "answer": question.answer} for question in questions]
    assert score(questions, right).endswith("300 of 300 right")
    assert score(questions, [{**right[0], "answer": "?"}, *right[1:]]).endswith("299 of 300 right")


@pytest.mark.parametrize(
    ("given", "answer", "same"),
    [
        ("3.67 USD", 3.673, True),
        ("3.6", 3.673, False),
        ("$1,900", 1900, True),
        ("NC24ads A100 v4", "Standard_NC24ads_A100_v4", True),
        ("east us", "eastus", True),
        ("", 5, False),
        (None, None, True),
    ],
)
def test_an_answer_may_be_written_in_another_way(given: object, answer: object, same: bool) -> None:
    assert agrees(given, answer) is same
