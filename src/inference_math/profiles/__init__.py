"""The old name of `inference_math.calibrate`, until the next release."""
