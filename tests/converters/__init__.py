"""Schemas from and to the values of the use cases."""
