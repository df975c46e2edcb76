"""Compares estimates with what was measured, family by family.

A family is a figure of the API for one kind of workload, with measurements of it: a module of this package, which has
its data beside it and is listed in `families`.
"""
