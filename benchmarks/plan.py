"""Durations of a run: a few seconds to try the cases, minutes for publishable figures."""

from dataclasses import dataclass

from benchmarks.catalogs import Scale

SECONDS_A_QUESTION = 0.015
INGESTED_PER_SECOND = 10_000
"""Prices, with the ingests of the same file again and of a changed one."""
INGESTED_PAGES_PER_SECOND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Durations in seconds; the subject and its reference are loaded in turn, `pairs` times each."""

    pairs: int
    burst: float
    warm_up: float
    open_loop: float
    open_loops: int
    starts: int
    memory: float
    questions: int
    """Number of different questions in each round of a case of CPU time; a fifth of them over large catalogs."""
    stall: float
    ingest: Scale
    pages: int
    """Pages of a catalog into which one more is ingested."""

    def seconds(self, kind: str) -> float:
        """Return the estimated seconds of a case of a kind, including the start of its servers."""
        return {
            "load": 3 + 2 * self.warm_up + 2 * self.pairs * self.burst,
            "open loop": 2 + 2 * self.warm_up + self.open_loops * self.open_loop,
            "start": 3.0 * self.starts,
            "command": 2.0 * self.starts,
            "memory": 2 + self.memory,
            "download": 6 + 2 * self.pairs * self.burst,
            "file": 4 + self.pairs,
            "growth": 3 + (self.pairs + 1) * self.questions * SECONDS_A_QUESTION,
            "cpu": 3 + self.pairs * self.questions * SECONDS_A_QUESTION,
            "panel": 4.0 * self.pairs,
            "memory of a panel": 8,
            "memory of all": 40,
            "stalls": 10 + 10 * self.stall,
            "workers": 6 + 2 * self.pairs * self.burst,
            "ingest": self.ingest.prices / INGESTED_PER_SECOND,
            "ingest of a page": 10 + self.pages / INGESTED_PAGES_PER_SECOND,
        }[kind]


FULL = Plan(pairs=5, burst=3, warm_up=2, open_loop=5, open_loops=5, starts=7, memory=120,
            questions=200, stall=4, ingest=Scale(sizes=10_000, prices=1_000_000), pages=2_820)  # fmt: skip
QUICK = Plan(pairs=3, burst=1, warm_up=1, open_loop=2, open_loops=2, starts=3, memory=5,
             questions=50, stall=1, ingest=Scale(sizes=2_500, prices=250_000), pages=280)  # fmt: skip
MAX_BURST_SECONDS = 30.0
"""A burst lasts at least as long as RESPONSES_PER_BURST take, and never longer than this."""
RESPONSES_PER_BURST = 5
