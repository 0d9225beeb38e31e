"""Fleets: what traffic, sessions and benchmarks take when requests queue, and what stores, layouts and GPUs bring."""
