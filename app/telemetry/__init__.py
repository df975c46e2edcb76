"""How a running program tells what it does: log lines, counters that workers share, traces."""
