"""Paired benchmarks: two servers on one machine are loaded in turn; only their ratio is a result."""
