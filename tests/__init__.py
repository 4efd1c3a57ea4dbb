"""The tests mirror the package; `golden/` holds texts that may change only on purpose."""
