# SPDX-License-Identifier: MIT
"""rapt.attention on NumPy arrays: values, options, strides, refusals."""
import numpy
import pytest
import rapt

TOLERANCE = 3e-6


@pytest.fixture
def arrays(random):
    return random(2, 8, 13, 32), random(2, 2, 13, 32), random(2, 2, 13, 16)


def distances(queries, keys, first=0):
    """How far before its query a key is."""
    return numpy.arange(first, first + queries)[:, None] - numpy.arange(keys)[None]


def near(result, expected):
    return numpy.abs(result - expected).max() < TOLERANCE


def test_plain(arrays, reference):
    assert near(rapt.attention(*arrays), reference(*arrays))
    assert near(rapt.attention(*arrays, scale=0.3, softcap=2.0), reference(*arrays, scale=0.3, softcap=2.0))


def test_causal_and_window(arrays, reference):
    back = distances(13, 13)
    assert near(rapt.attention(*arrays, causal=True), reference(*arrays, allowed=back >= 0))
    for window in (4, numpy.int64(4), [3, 0]):
        assert near(rapt.attention(*arrays, window=window), reference(*arrays, allowed=(back >= 0) & (back < 4)))
    assert near(rapt.attention(*arrays, window=(2, 3)), reference(*arrays, allowed=(back <= 2) & (back >= -3)))
    assert near(rapt.attention(*arrays, window=(None, 1)), reference(*arrays, allowed=back >= -1))


def test_positions(arrays, reference):
    query, key, value = arrays
    query = query[:, :, :5]
    for position, first in (("top-left", 0), ("bottom-right", 8), (3, 3), (numpy.int32(3), 3)):
        expected = reference(query, key, value, allowed=distances(5, 13, first) >= 0)
        assert near(rapt.attention(query, key, value, causal=True, query_position=position), expected)
    each = rapt.attention(query, key, value, causal=True, query_position=[3, 8])
    for b, first in enumerate((3, 8)):
        expected = reference(query[b:b + 1], key[b:b + 1], value[b:b + 1], allowed=distances(5, 13, first) >= 0)
        assert near(each[b:b + 1], expected)


def test_masks_and_biases(arrays, reference, random):
    mask = random(2, 1, 13, 13) > 0
    mask[..., 0] = True
    bias = random(8, 13, 13)
    assert near(rapt.attention(*arrays, mask=mask), reference(*arrays, allowed=mask))
    assert near(rapt.attention(*arrays, mask=mask, bias=bias), reference(*arrays, allowed=mask, bias=bias))
    assert near(rapt.attention(*arrays, bias=bias.astype(numpy.float16)),
                reference(*arrays, bias=bias.astype(numpy.float16).astype(float)))
    filled = rapt.attention(*arrays, mask=numpy.zeros((1, 13), bool), mask_fill=-9.0)
    assert near(filled, reference(*arrays, bias=0, scale=0))


def test_alibi_and_sinks(arrays, reference, random):
    slopes, sinks = numpy.abs(random(8)), random(8)
    bias = -slopes[:, None, None] * numpy.abs(distances(13, 13))
    assert near(rapt.attention(*arrays, alibi=slopes), reference(*arrays, bias=bias))
    standard = 2.0 ** -numpy.arange(1, 9)
    assert near(rapt.attention(*arrays, alibi=True), rapt.attention(*arrays, alibi=standard))
    assert near(rapt.attention(*arrays, sinks=sinks), reference(*arrays, sinks=sinks))
    assert near(rapt.attention(*arrays, sinks=list(sinks)), reference(*arrays, sinks=sinks))


def test_lengths(arrays, reference):
    result = rapt.attention(*arrays, kv_lengths=[13, 4], query_lengths=numpy.array([13, 13], numpy.int32))
    for b, length in enumerate((13, 4)):
        query, key, value = (array[b:b + 1] for array in arrays)
        assert near(result[b:b + 1], reference(query, key[:, :, :length], value[:, :, :length]))


def test_lse_and_weights(arrays, reference):
    out, lse, weights = rapt.attention(*arrays, causal=True, lse=True, weights=True)
    assert lse.shape == (2, 8, 13) and weights.shape == (2, 8, 13, 13)
    assert near(weights.sum(-1), 1) and near(weights @ arrays[2].repeat(4, 1), out)
    scores = arrays[0] @ arrays[1].repeat(4, 1).swapaxes(2, 3) / numpy.sqrt(32)
    raw = numpy.empty((2, 8, 13, 13), numpy.float32)
    result = rapt.attention(*arrays, weights=raw, weights_kind="raw")
    assert result[1] is raw and near(raw, scores)
    allowed = distances(13, 13) >= 0
    assert near(lse, numpy.log(numpy.where(allowed, numpy.exp(scores.astype(float)), 0).sum(-1)))


def test_layouts_and_strides(arrays):
    expected = rapt.attention(*arrays, causal=True)
    swapped = [array.swapaxes(1, 2) for array in arrays]
    assert (rapt.attention(*swapped, causal=True, layout="bshd") == expected.swapaxes(1, 2)).all()
    copies = [array.copy() for array in swapped]
    assert (rapt.attention(*copies, causal=True, layout="bshd") == expected.swapaxes(1, 2)).all()
    assert (rapt.attention(*(array[0] for array in arrays), causal=True) == expected[0]).all()
    backwards = rapt.attention(*(array[::-1] for array in arrays), causal=True)
    assert (backwards[::-1] == expected).all()
    scattered = [numpy.repeat(array, 2, 3)[..., ::2] for array in arrays]  # copied: dims are not contiguous
    assert (rapt.attention(*scattered, causal=True) == expected).all()
    out = numpy.zeros((2, 8, 13, 20), numpy.float32)
    assert rapt.attention(*arrays, causal=True, out=out[..., :16]) is not None
    assert (out[..., :16] == expected).all() and (out[..., 16:] == 0).all()


def test_half_precision(arrays):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for dtype in (numpy.float16, bfloat16):
        stored = [array.astype(dtype) for array in arrays]
        result = rapt.attention(*stored, causal=True)
        exact = rapt.attention(*(array.astype(numpy.float32) for array in stored), causal=True)
        assert result.dtype == dtype and (result == exact.astype(dtype)).all()
        mixed = rapt.attention(arrays[0], *stored[1:], causal=True)
        assert mixed.dtype == numpy.float32


def test_dlpack_of_other_kinds(arrays):
    class Other:  # as any package may pass
        def __init__(self, array):
            self.array, self.shape = array, array.shape

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Older(Other):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    expected = rapt.attention(*arrays)
    assert (rapt.attention(*map(Other, arrays)) == expected).all()
    query, key, value = arrays
    assert (rapt.attention(query, Older(key), Older(value)) == expected).all()


def test_same_bits(arrays):
    expected = rapt.attention(*arrays, causal=True)
    for isa in rapt.info()["isas"]:
        assert (rapt.attention(*arrays, causal=True, isa=isa, threads=3) == expected).all()
    assert (rapt.attention(*(array[1:] for array in arrays), causal=True) == expected[1:]).all()


def test_orders(arrays):
    assert (rapt.attention(*arrays, numerics=1) == rapt.attention(*arrays)).all()
    assert near(rapt.attention(*arrays, numerics=-1), rapt.attention(*arrays))
    with pytest.raises(ValueError, match="numerics = 9"):
        rapt.attention(*arrays, numerics=9)


def test_plan(arrays, random):
    plan = rapt.Plan(*arrays, causal=True, lse=True, sinks=numpy.zeros(8))
    others = [random(*array.shape) for array in arrays]
    for given in (arrays, others):
        results = plan(*given), rapt.attention(*given, causal=True, lse=True, sinks=numpy.zeros(8))
        assert all((a == b).all() for a, b in zip(*results))
    with pytest.raises(ValueError, match=r"key: it is float32 of shape \[2, 2, 12, .*planned was .*\[2, 2, 13, 32\]"):
        plan(arrays[0], arrays[1][:, :, :12], arrays[2])
    with pytest.raises(ValueError, match="mask: "):
        plan(*arrays, mask=numpy.ones((13, 13), bool))


def test_no_rows(random):
    assert rapt.attention(random(0, 2, 3, 8), random(0, 2, 3, 8), random(0, 2, 3, 8)).shape == (0, 2, 3, 8)
    assert (rapt.attention(random(1, 2, 3, 8), random(1, 2, 0, 8), random(1, 2, 0, 8)) == 0).all()


REFUSED = [
    (dict(key=(2, 2, 13, 31)), ValueError, r"key: its shape is \[2, 2, 13, 31\].*\[2, 2, 13, 32\] is required"),
    (dict(key=(3, 2, 13, 32)), ValueError, r"key: its shape is \[3, 2, 13, 32\]"),
    (dict(key=(2, 13, 32)), ValueError, r"key: its shape is \[2, 13, 32\]"),
    (dict(value=(2, 2, 12, 16)), ValueError, r"value: its shape is .*\[2, 2, 13, 16\] is required"),
    (dict(key=(2, 3, 13, 32), value=(2, 3, 13, 16)), ValueError, "query_heads = 8 is not a multiple of kv_heads = 3"),
    (dict(out=(2, 8, 12, 16)), ValueError, r"out: its shape is .*\[2, 8, 13, 16\] is required"),
    (dict(bias=(2, 8, 13, 1)), ValueError, r"bias: its shape is .*\[2, 8, 13, 13\] is required"),
    (dict(sinks=[0.0]), ValueError, r"sinks: .*\[8\], is required"),
    (dict(sinks=[numpy.nan] * 8), ValueError, "sinks"),
    (dict(kv_lengths=[13, 14]), ValueError, "kv_lengths"),
    (dict(kv_lengths=[13, 13, 13]), ValueError, r"kv_lengths: its shape is \[3\]; .*\[2\], is required"),
    (dict(kv_lengths=numpy.array([1.0, 2.0])), TypeError, "kv_lengths: .*int32 and int64"),
    (dict(layout="shbd"), ValueError, "layout: 'shbd' is not one of bhsd, bshd"),
    (dict(query_position="left"), ValueError, "query_position"),
    (dict(window=0), ValueError, "window: 0"),
    (dict(window=1.5), TypeError, r"window: 1.5 is neither a number of keys nor a pair \(before, after\)"),
    (dict(window=[1, 2, 3]), TypeError, r"window: .*1, 2, 3.* is neither"),
    (dict(window=[2**64, 0]), ValueError, r"window: \(18446744073709551616, 0\) are not two integers of 64 bits"),
    (dict(window=[1.5, 0]), TypeError, r"window: \(1.5, 0\) are not two integers"),
    (dict(numerics=2**32), ValueError, "numerics: 4294967296 does not fit in 32 bits"),
    (dict(numerics=2**70), ValueError, "numerics: .* does not fit in 32 bits"),
    (dict(numerics=1.0), TypeError, "numerics: an integer is required, not 1.0"),
    (dict(threads=2**32 + 1), ValueError, "threads: 4294967297 does not fit in 32 bits"),
    (dict(threads=0), ValueError, "threads: 0 is below 1"),
    (dict(threads=-1), ValueError, "threads: -1 is below 1"),
    (dict(threads="2"), TypeError, "threads: an integer is required, not '2'"),
    (dict(scale="a"), TypeError, "scale: a number is required, not 'a'"),
    (dict(causal="no"), TypeError, "causal: a bool is required, not 'no'"),
    (dict(causal=2), TypeError, "causal: a bool is required, not 2"),
    (dict(causal=numpy.array([True, False])), TypeError, r"causal: a bool is required, not array\("),
    (dict(window=True), TypeError, r"window: True is neither a number of keys nor a pair"),
    (dict(kv_lengths=[2**63, 2**63]), TypeError, "kv_lengths: expected 64-bit integers, not .9223372036854775808, "),
    (dict(query_position=2**63), TypeError, "query_position: expected 64-bit integers, not 9223372036854775808"),
    (dict(mask=numpy.ones((13, 13), numpy.int32)), TypeError, "mask: its elements are int32; bools are required"),
    (dict(isa="mmx"), ValueError, "isa: 'mmx'"),
    (dict(query=(2, 8, 12, 32), causal=True), ValueError, 'query_position: "top-left", "bottom-right"'),
    (dict(query=numpy.zeros((2, 8, 13, 32))), TypeError, "query: its elements are float64"),
    (dict(query=[1.0]), TypeError, "query: .*not an array"),
    (dict(key="key"), TypeError, "key: .*not an array"),
    (dict(value=(2, 2, 13, 0)), ValueError, r"value: its shape is \[2, 2, 13, 0\]; its last dimension is below 1"),
    (dict(value=None), TypeError, "value: .*NoneType.* is not an array"),
    (dict(query=(8,)), ValueError, r"query: its shape is \[8\]; at least 2 dimensions"),
    (dict(key=(3,), weights=True), ValueError, r"key: its shape is \[3\]; at least 2 dimensions"),
    (dict(kv_lengths=[2.7, 3.9]), TypeError, r"kv_lengths: expected 64-bit integers, not \[2.7, 3.9\]"),
    (dict(kv_lengths=10**30), TypeError, "kv_lengths: expected 64-bit integers, not 10*0"),
    (dict(query_position=float("nan")), TypeError, "query_position: expected 64-bit integers, not nan"),
    (dict(query=numpy.zeros((2, 8, 13, 32), ">f4")), TypeError, "query: its elements are of 4 bytes of another type"),
    (dict(query=(1, 1, 2, 8, 13, 32)), ValueError, "query: it has 6 dimensions"),
    (dict(query=numpy.zeros((2, 8, 13, 32), numpy.int32)), TypeError, "query: its elements are int32; floats are"),
    (dict(key=numpy.zeros((2, 2, 13, 32), numpy.int8)), TypeError, "key: its elements are int8; floats are required"),
    (dict(mask=numpy.ones((13, 13), numpy.int64)), TypeError, "mask: its elements are int64; bools are required"),
    (dict(out=numpy.zeros((2, 8, 13, 16), numpy.int64)), TypeError, "out: its elements are int64; floats are required"),
    (dict(sinks="sinks"), TypeError, "sinks: expected numbers, not 'sinks'"),
    (dict(alibi=[[1], [1, 2]]), TypeError, r"alibi: expected numbers, not \[\[1\], \[1, 2\]\]"),
    (dict(kv_lengths=[[1], [1, 2]]), TypeError, r"kv_lengths: expected 64-bit integers, not \[\[1\], \[1, 2\]\]"),
    (dict(softcap=1e-50), ValueError, "softcap: 1e-50 is 0 when rounded to float32, which is off"),
]


@pytest.mark.parametrize("change, error, text", REFUSED)
def test_refusals(arrays, change, error, text):
    arguments = dict(zip(("query", "key", "value"), arrays))
    for name, value in change.items():
        arguments[name] = numpy.zeros(value, numpy.float32) if isinstance(value, tuple) else value
    with pytest.raises(error, match=text):
        rapt.attention(**arguments)


def test_values_without_numbers_are_not_those_of_keys():
    """The library takes 0 for the dim of keys, which has no room here."""
    row = numpy.ones((1, 1, 1, 1024), numpy.float32)
    for call in (rapt.attention, rapt.Plan):
        with pytest.raises(ValueError, match="its last dimension is below 1"):
            call(row, row, row[..., :0])


def test_queries_of_any_kind(arrays):
    class Named(numpy.ndarray):
        pass

    query, key, value = arrays
    expected = rapt.attention(query, key, value)
    assert (rapt.attention(query.view(Named), key.view(Named), value) == expected).all()
    assert (rapt.attention(memoryview(query), memoryview(key), value) == expected).all()
    ml_dtypes = pytest.importorskip("ml_dtypes")
    halves = query.astype(ml_dtypes.bfloat16)
    assert (rapt.attention(halves.view(Named), key, value) == rapt.attention(halves, key, value)).all()


def test_bools_of_any_kind(arrays):
    for causal in (True, False):
        expected = rapt.attention(*arrays, causal=causal)
        for same in (numpy.bool_(causal), int(causal)):
            assert (rapt.attention(*arrays, causal=same) == expected).all()


def test_one_length_for_all(arrays):
    expected = rapt.attention(*arrays, kv_lengths=[7, 7])
    for length in (7, numpy.int32(7), numpy.array(7)):
        assert (rapt.attention(*arrays, kv_lengths=length) == expected).all()
        assert (rapt.attention(*(array[0] for array in arrays), kv_lengths=length) == expected[0]).all()


def test_plan_says_what_is_absent(arrays):
    plan = rapt.Plan(*arrays, mask=numpy.ones((13, 13), bool))
    with pytest.raises(ValueError, match="mask: it is absent; planned was one"):
        plan(*arrays)


def test_refused_outputs(arrays):
    out = numpy.zeros((2, 8, 13, 16), numpy.float32)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="out: it is read-only"):
        rapt.attention(*arrays, out=out)
    with pytest.raises(ValueError, match="out: its last dimension must be contiguous"):
        rapt.attention(*arrays, out=numpy.zeros((2, 8, 13, 32), numpy.float32)[..., ::2])
    with pytest.raises(ValueError, match="out overlaps|overlap"):
        rapt.attention(arrays[2], arrays[2], arrays[2], out=arrays[2])
