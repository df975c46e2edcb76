"""The door: what every request and every answer passes through, whatever is asked."""
