"""Measuring one's own GPU: prefills, decode steps, mixed steps and their parts, loads of prefixes, in minutes.

``python -m inference_math_bench.measure --model llama-3-70b --weights fp8 --minutes 5 --out mine.csv``

What is timed (`points`), how (`timing`), how much of a model fits (`room`) and what is written down (`record`) need no
PyTorch; the decoder and the device do. In a checkout ``pip install "./src/inference_math_bench[measure]"`` brings it.
"""
