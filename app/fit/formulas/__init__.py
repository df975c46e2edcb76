"""Formulas for the memory, time and cost of a language model, from its architecture and a workload."""
