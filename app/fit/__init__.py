"""Arithmetic on values: what jobs and language models need, and which VM sizes fit; standard library only."""
