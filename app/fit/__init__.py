"""CALCULATE: pure arithmetic on values; standard library only."""
