"""Paired benchmarks: two servers side by side on one machine, asked in turn; only their ratio is a claim."""
