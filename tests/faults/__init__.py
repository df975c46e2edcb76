"""Real servers and real faults: what clients see meanwhile, and what is left afterwards."""
