"""The arithmetic of steps, batches and plans in plain Python: numbers, lists, dicts, functions; no arrays, no checks.

The book prints these modules as JavaScript, and the formulas that they call from SymPy: the planner's page computes
what `planner.plan` computes, because it is the same code. Keep to what both languages have: `max` and `min` of two
numbers, sorting with a key, no default arguments, no truth of lists.
"""
