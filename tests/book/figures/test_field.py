import numpy as np

from inference_math.unit import Unit
from inference_math_book.figures import field as plots


def test_a_dense_model_reads_everything_and_a_mixture_what_was_chosen(ax):
    units = {"dense": Unit.of("llama-3-8b", "h100-sxm"), "mixture": Unit.of("gpt-oss-120b", "h100-sxm")}
    frame = plots.chosen_weights(ax, units)
    assert (frame[frame.model == "dense"].share == 1).all()
    shares = frame[frame.model == "mixture"].share.to_numpy()
    assert (np.diff(shares) > 0).all()
    assert shares[0] < 0.1 < 0.9 < shares[-1]  # chosen unevenly, some experts are met late
