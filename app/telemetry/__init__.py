"""How a running program reports what it does: log lines, counters that workers share, traces."""
