"""Find the sizes a language model fits on: how many VMs, which parallelism, how fast, at what cost, or why not."""
