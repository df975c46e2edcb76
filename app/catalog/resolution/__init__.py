"""DECIDE: from what the sources say to the accepted value; pure."""
