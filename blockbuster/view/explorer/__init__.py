"""The derivation explorer: a derivation as one self-contained HTML page."""
