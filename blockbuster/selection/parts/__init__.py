"""Parts of a program: which of its operators become one kernel, and which plan of them is best."""
