"""What measures: steps of a GPU (`measure`, with PyTorch) and the laws on a running engine (`lab`, with vLLM)."""
