"""Programs that are considered: snapshots, and programs beside them."""
