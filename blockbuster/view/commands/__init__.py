"""The commands, one file each: its arguments (`add_arguments`), its action (`run`), `EXAMPLES`."""
