"""Schedules chosen by measuring: candidates checked and timed on the GPU, results kept on disk.

``known`` finds results for a program, ``measuring`` makes them, ``store`` keeps them.
"""
