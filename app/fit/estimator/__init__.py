"""Estimates a workload of a language model: picks formulas, records assumptions and what had to be left out."""
