"""The laboratory: the laws on a running engine, vLLM, on any machine.

``inference-math lab --out mine`` drives vLLM in process, step by step, with random weights, and sets what it does
beside what the formulas said before. It needs an environment of its own: ``make laboratory``, or in a checkout
``pip install . ./src/inference_math_planner ./src/inference_math_bench`` beside a vLLM for the machine.

What is asked of an engine is in `engines`, the users and the bare steps in `drive`, the experiments in `experiments`,
their order in `session`, what is written down in `record`. Those need no vLLM: they run on `engines.Played`, too, which
plays any cost of a step, so that a wrong law can be planted. `vllm_engine`, `store` and `core` need vLLM. The last one
runs its scheduler without a model, on a clock that is told, for the simulator to be held against.
"""
