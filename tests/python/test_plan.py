# SPDX-License-Identifier: MIT
"""rapt.Plan: what runs bind, and lists that a plan keeps, whatever happens to the caller's."""
import gc
import weakref

import numpy
import pytest
import rapt

KINDS = ["numpy", "torch"]


@pytest.fixture
def arrays(random):
    return random(2, 8, 13, 32), random(2, 2, 13, 32), random(2, 2, 13, 16)


def results(returned):
    return returned if isinstance(returned, tuple) else (returned,)


def same(some, others):
    """Bit for bit; NumPy arrays or tensors."""
    pairs = [(numpy.asarray(a), numpy.asarray(b)) for a, b in zip(results(some), results(others), strict=True)]
    return all(numpy.array_equal(a, b) for a, b in pairs)


def of_kind(kind, array):
    return array if kind == "numpy" else pytest.importorskip("torch").from_numpy(array)


EXTRAS = {  # mask and bias are drawn again for each run
    "mask": dict(mask=(2, 1, 13, 13)), "bias": dict(bias=(8, 13, 13)),
    "mask and bias": dict(mask=(13, 13), bias=(2, 8, 13, 13)),
    "mask of its own fill": dict(mask=(13, 13), mask_fill=-3.0),
    "slopes": dict(alibi=numpy.linspace(0.01, 0.7, 8)), "standard slopes": dict(alibi=True),
    "slopes, bias and sinks": dict(alibi=numpy.linspace(0.01, 0.7, 8), bias=(1, 1, 13, 13), sinks=numpy.arange(8.0)),
    "sinks": dict(sinks=numpy.linspace(-1, 2, 8)),
    "weights": dict(weights=True), "raw weights": dict(weights=True, weights_kind="raw", softcap=1.5),
    "mask, bias, lse and weights": dict(mask=(2, 8, 13, 13), bias=(13, 13), lse=True, weights=True,
                                        weights_kind="masked"),
    "all": dict(mask=(13, 13), bias=(8, 13, 13), alibi=numpy.linspace(0.01, 0.7, 8), sinks=numpy.ones(8), lse=True,
                weights=True, causal=True, window=5, scale=0.3, softcap=2.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("extra", EXTRAS)
def test_runs_have_the_bits_of_calls(random, arrays, extra, kind):
    def draw():
        """Arrays of a run, and its mask and bias."""
        bound = {}
        for name in EXTRAS[extra].keys() & {"mask", "bias"}:
            bound[name] = random(*EXTRAS[extra][name])
            if name == "mask":
                bound[name] = bound[name] > -0.5
        given = [random(*array.shape) for array in arrays]
        return [of_kind(kind, array) for array in given], {k: of_kind(kind, v) for k, v in bound.items()}

    given, bound = draw()
    options = {**EXTRAS[extra], **bound}
    plan = rapt.Plan(*given, **options)
    for given, bound in ((given, bound), draw(), draw()):
        assert same(plan(*given, **bound), rapt.attention(*given, **{**options, **bound}))


def test_runs_fill_the_arrays_that_they_are_given(random, arrays):
    options = dict(mask=random(13, 13) > -0.5, bias=random(13, 13))
    plan = rapt.Plan(*arrays, lse=True, weights=True, **options)
    given = [numpy.full(shape, numpy.nan, numpy.float32) for shape in ((2, 8, 13, 16), (2, 8, 13), (2, 8, 13, 13))]
    returned = plan(*arrays, **options, **dict(zip(("out", "lse", "weights"), given)))
    assert all(a is b for a, b in zip(returned, given, strict=True))
    assert same(tuple(given), rapt.attention(*arrays, lse=True, weights=True, **options))


# Lists of more than a kilobyte: malloc caches smaller freed blocks, and tensors would not get them.
BATCH, HEADS = 300, 600


def lists_of_sequences(kind):
    numbers = numpy.arange(BATCH)
    lists = dict(query_lengths=1 + numbers % 4, kv_lengths=3 + numbers % 5, query_position=numbers % 6,
                 key_position=numbers % 2)
    return {name: of_kind(kind, array) for name, array in lists.items()}


def lists_of_heads(kind):
    lists = dict(alibi=numpy.linspace(0.01, 0.7, HEADS, dtype=numpy.float32),
                 sinks=numpy.linspace(-2, 3, HEADS, dtype=numpy.float32))
    return {name: of_kind(kind, array) for name, array in lists.items()}


LISTS = [((BATCH, 2, 4, 8), (BATCH, 1, 7, 8), lists_of_sequences), ((1, HEADS, 4, 8), (1, 2, 7, 8), lists_of_heads)]


def drawn(random, query, key, kind):
    return [of_kind(kind, random(*shape)) for shape in (query, key, key)]


def rows_of(out, lists):
    """With zeros from query_lengths on: those rows are unwritten."""
    rows = numpy.asarray(out).copy()
    for b, length in enumerate(numpy.asarray(lists.get("query_lengths", ()))):
        rows[b, :, length:] = 0
    return rows


def planned(random, query, key, lists_of, kind):
    """A plan with lists, its arguments, and its result while they exist."""
    given, lists = drawn(random, query, key, kind), lists_of(kind)
    options = dict(causal=True) if "kv_lengths" in lists else dict(causal=True, query_position=3)
    expected = rapt.attention(*given, **options, **lists)
    plan = rapt.Plan(*given, **options, **lists)
    return given, options, lists, plan, expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query, key, lists_of", LISTS)
def test_lists_may_change(random, query, key, lists_of, kind):
    given, options, lists, plan, expected = planned(random, query, key, lists_of, kind)
    for array in lists.values():
        array[:] = 1
    kept = lists_of(kind)
    assert (rows_of(plan(*given), kept) == rows_of(expected, kept)).all()
    assert not (rows_of(rapt.attention(*given, **options, **lists), kept) == rows_of(expected, kept)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query, key, lists_of", LISTS)
def test_lists_may_go(random, query, key, lists_of, kind):
    """A plan that read a freed list's memory would find something else there."""
    given, _, lists, plan, expected = planned(random, query, key, lists_of, kind)
    sizes = [(len(array), array.dtype) for array in lists.values()]
    del lists
    gc.collect()
    others = []
    for count, dtype in sizes * 50:
        others.append(given[0].new_full((count,), 1, dtype=dtype) if kind == "torch" else numpy.ones(count, dtype))
    kept = lists_of(kind)
    assert (rows_of(plan(*given), kept) == rows_of(expected, kept)).all() and len(others) == 50 * len(sizes)


def test_arrays_that_were_planned_with_may_go(arrays):
    """Runs bring others, and weights alone may outweigh everything else."""
    expected = rapt.attention(*arrays, weights=True)
    first = [array.copy() for array in arrays]
    first += [numpy.empty((2, 8, 13, 16), numpy.float32), numpy.empty((2, 8, 13, 13), numpy.float32)]
    plan, kept = rapt.Plan(*first[:3], out=first[3], weights=first[4]), [weakref.ref(array) for array in first]
    first.clear()
    gc.collect()
    assert not any(array() is not None for array in kept)
    assert same(plan(*arrays), expected)
    with pytest.raises(ValueError, match="key: it is float32 of shape .*planned was float32 .2, 2, 13, 32."):
        plan(arrays[0], arrays[2], arrays[2])
