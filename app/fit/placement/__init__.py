"""Placement: on which sizes a language model fits, on how many VMs and how cut, how fast, and why not on others."""
