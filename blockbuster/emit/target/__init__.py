"""What compilers and devices offer, and what they get wrong."""
