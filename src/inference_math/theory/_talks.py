"""Where the formulas were printed."""

A = "Hillel, From Heuristics to Principles, SDC StorageAI 2026"
B = "Hillel, From GPU Bottlenecks to Smooth Chat, Core C++ 2025"
C = "Hillel, Disaggregated KV Storage, SNIA SDC 2025"
D = "Post on SARATHI and DistServe, 2025"
E = "Post: The LLM Inference Performance Restaurant"
BOOK = "this book"
