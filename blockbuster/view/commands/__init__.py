"""The commands, a file each: what it takes (`add_arguments`), what it does (`run`), `EXAMPLES`."""
