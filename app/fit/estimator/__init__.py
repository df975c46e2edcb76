"""From a workload to its breakdown: which formulas answer it, what is assumed, what is left out."""
