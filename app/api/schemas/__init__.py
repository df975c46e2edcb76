"""Estimate: what a model needs, as it is asked and answered over HTTP."""
