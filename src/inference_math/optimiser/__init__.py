"""The one optimiser: which architecture and settings serve most within limits (`choice`), asked by a `Case`.

`compare` asks it for one set of costs, a plan for each draw of a calibration.
"""
