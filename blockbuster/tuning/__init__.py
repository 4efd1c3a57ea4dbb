"""Tuning: schedules chosen by measuring candidates on the GPU, with results kept on disk.

``known`` finds results for a program, ``measuring`` makes them, ``store`` keeps them.
"""
