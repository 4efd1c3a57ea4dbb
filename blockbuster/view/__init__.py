"""Views: pictures, tables, the derivation explorer and the command line."""
