"""One feed a pair of modules: the mapping is pure, the client is the only one that does I/O."""
