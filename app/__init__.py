"""A catalog of cloud VM sizes: know them, calculate with them, receive figures, show them."""
