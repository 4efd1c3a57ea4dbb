"""Calibration: measures the constants of the present device."""

from blockbuster.calibration.procedure import ROUNDS, calibrate, check_rounds, present_device
from blockbuster.calibration.result import Calibration

__all__ = ["ROUNDS", "Calibration", "calibrate", "check_rounds", "present_device"]
