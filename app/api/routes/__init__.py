"""Fit: which sizes hold a job, as it is asked and answered over HTTP."""
