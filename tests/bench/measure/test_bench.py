"""From points to runs: what is run, what moves, and what waits for what."""

import gc
import weakref
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-measure runs this")

from inference_math.workload.points import KINDS, Point, points  # noqa: E402
from inference_math_bench.measure import bench as module  # noqa: E402
from inference_math_bench.measure.bench import Bench, fastest  # noqa: E402
from inference_math_bench.measure.decoder import Decoder, Kernels  # noqa: E402
from inference_math_bench.measure.device import Host, _Replay  # noqa: E402


@pytest.fixture
def decoder(small):
    return Decoder(small, 2, 2**11, fp8=False, random=torch.Generator())


def test_every_kind_of_work_runs(decoder):
    found = points(2**11, 2**7, fp8=True, shrink=64)
    bench, first = Bench(decoder, Host()), {}
    for point in found:
        first.setdefault(point.what, point)
    assert set(first) == set(KINDS)
    for point in first.values():
        bench.work(point).run()


def test_steps_are_run_as_their_kind_says(decoder, monkeypatch):
    seen = []
    step = Decoder.step

    def watched(self, ids, shape, **how):
        seen.append((shape.what, len(ids), {name: how[name] for name in ("attention", "two_streams")}))
        return step(self, ids, shape, **how)

    monkeypatch.setattr(Decoder, "step", watched)
    bench = Bench(decoder, Host())
    for what in ("mixed", "mixed-attention", "matrices"):
        bench.work(Point(what, 2, 8 if what != "matrices" else 0, 1, 4)).run()
    assert seen == [
        ("mixed", 6, {"attention": True, "two_streams": False}),
        ("mixed-attention", 6, {"attention": True, "two_streams": True}),
        ("matrices", 6, {"attention": False, "two_streams": False}),
    ]


def test_two_steps_beside_each_other_share_no_place_in_the_cache(decoder, monkeypatch):
    seen = []
    region = Decoder.region

    def watched(self, layer, start, requests, length):
        seen.append((layer, start, requests * length))
        return region(self, layer, start, requests, length)

    monkeypatch.setattr(Decoder, "region", watched)
    Bench(decoder, Host()).work(Point("mixed-steps", 2, 8, 1, 4, 3)).run()
    assert seen == [(0, 0, 16), (1, 0, 16), (0, 16, 7), (1, 16, 7)]


def test_attention_alone_goes_through_all_layers_without_products(decoder, monkeypatch):
    layers = []
    monkeypatch.setattr(Decoder, "attend", lambda self, layer, *rest: layers.append(layer))
    monkeypatch.setattr(Decoder, "step", lambda *_: pytest.fail("a step"))
    Bench(decoder, Host()).work(Point("attention", 2, 8)).run()
    assert layers == [0, 1]


@pytest.mark.parametrize("what", ["load", "load-first", "load-layerwise"])
def test_a_load_brings_the_prefix_of_every_layer(decoder, what):
    bench, tokens = Bench(decoder, Host()), 0 if what == "load" else 3
    work = bench.work(Point(what, prompts=1, tokens=tokens, cached=10))
    assert work.bytes == 10 * decoder.model.kv_token("bf16")
    expected = [cache[:, :10].clone() for cache in decoder.cache]
    for cache in decoder.cache:
        cache.zero_()
    work.run()
    assert all(torch.equal(cache[:, :10], there) for cache, there in zip(decoder.cache, expected, strict=True))
    if tokens:
        assert all(cache[:, 10:13].abs().sum() > 0 for cache in decoder.cache)
    assert all(cache[:, 13:].abs().sum() == 0 for cache in decoder.cache)


def test_a_graph_s_inputs_live_as_long_as_its_work(decoder, monkeypatch):
    """The graph points to them; the caller holds the work alone."""
    made = []
    tokens = Decoder.tokens

    def watched(self, count):
        found = tokens(self, count)
        made.append(weakref.ref(found))
        return found

    class Graphs(Host):
        def graph(self, run):
            return _Replay(SimpleNamespace(replay=lambda: None), run)

    monkeypatch.setattr(Decoder, "tokens", watched)
    bench = Bench(decoder, Graphs())
    for what in ("decode", "mixed", "mixed-attention", "mixed-steps", "load-first", "load-layerwise"):
        sizes = (0, 0) if what.startswith("load") else (2, 8)
        rest = () if what == "decode" else (1, 4, 3)
        made.clear()
        work = bench.work(Point(what, *sizes, *rest))
        gc.collect()
        assert made, what
        assert all(ref() is not None for ref in made), what
        work.run()


def test_rates_know_their_bytes_and_flops(decoder):
    bench = Bench(decoder, Host())
    assert bench.work(Point("copy")).bytes == 2 * 2**16
    for what in ("product-bf16", "product-fp8"):
        assert bench.work(Point(what)).flop == 2 * 64**3


def test_what_does_not_fit_is_a_memory_error(decoder, monkeypatch):
    def full(*_args, **_kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 TiB.\nmore")

    monkeypatch.setattr(Decoder, "tokens", full)
    with pytest.raises(MemoryError, match=r"^CUDA out of memory. Tried to allocate 9 TiB.$"):
        Bench(decoder, Host()).work(Point("decode", 1, 4))


def test_no_pinned_memory_is_a_memory_error(decoder, monkeypatch):
    empty = torch.empty

    def refusing(*size, pin_memory=None, **rest):
        if pin_memory is not None:
            raise RuntimeError("cannot pin")
        return empty(*size, **rest)

    monkeypatch.setattr(torch, "empty", refusing)
    with pytest.raises(MemoryError, match="no pinned host memory for 8 tokens: cannot pin"):
        Bench(decoder, Host()).work(Point("load", prompts=1, cached=8))


class Slow(Host):
    """A device on which each kernel takes a time of its own."""

    def __init__(self, times):
        self.times, self.asked, self.settled = times, [], 0

    def seconds(self, run):
        run()
        return self.times[self.asked[-1]]

    def settle(self):
        self.settled += 1


def test_the_fastest_kernel_that_works_is_taken_for_each_use(small, monkeypatch):
    device = Slow({"FLASH_ATTENTION": 2.0, "CUDNN_ATTENTION": 1.0, "EFFICIENT_ATTENTION": 0.5, "MATH": 0.1})

    class Watched(Decoder):
        def __init__(self, *args, kernels, **rest):
            super().__init__(*args, **rest)  # PyTorch's own choice, which works here
            used = [name for name in (kernels.chunk, kernels.prompt, kernels.decode) if name]
            device.asked.append(used[0])

        def attend(self, *args):
            if device.asked[-1] == "EFFICIENT_ATTENTION":
                raise RuntimeError("refused")
            return super().attend(*args)

    monkeypatch.setattr(module, "Decoder", Watched)
    typical = {"decode": [Point("attention", 2, 8)], "prompt": [Point("attention", prompts=1, tokens=8)]}
    typical["chunk"] = [Point("attention", prompts=1, tokens=4, cached=4)]
    # Behind a prefix cuDNN would take a mask of all pairs: not asked.
    assert fastest(small, device, typical) == Kernels("CUDNN_ATTENTION", "CUDNN_ATTENTION", "FLASH_ATTENTION")
    assert "MATH" not in device.asked  # a last resort
    assert device.settled == 3


def test_no_kernel_at_all_is_said(small, monkeypatch):
    monkeypatch.setattr(module, "_CANDIDATES", {"decode": ("CUDNN_ATTENTION",)})
    with pytest.raises(RuntimeError, match="none of PyTorch's attention kernels works for decode: CUDNN_ATTENTION"):
        fastest(small, Host(), {"decode": [Point("attention", 2, 8)]})
