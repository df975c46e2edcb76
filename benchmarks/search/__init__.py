"""`python -m benchmarks.search`: properties that every estimate and placement must have, on random requests."""
