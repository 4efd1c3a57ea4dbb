"""Calibration: the constants of the present device, measured."""

from blockbuster.calibration.procedure import ROUNDS, calibrate, present_device
from blockbuster.calibration.result import Calibration

__all__ = ["ROUNDS", "Calibration", "calibrate", "present_device"]
