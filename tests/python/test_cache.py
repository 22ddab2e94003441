# SPDX-License-Identifier: MIT
"""rapt.Cache: pages, storage types, rotary embedding, beams."""
import numpy
import pytest
import rapt
from rapt import _core


@pytest.fixture
def sequences(random):
    return random(3, 8, 30, 32), random(3, 2, 30, 32), random(3, 2, 30, 64)


def step(cache, sequences, first, last):
    query, key, value = (array[:, :, first:last] for array in sequences)
    cache.append(key, value)
    return cache.attend(query)


@pytest.mark.parametrize("page_tokens", [1, 4, 7, 64])
def test_steps_have_the_bits_of_one_call(sequences, page_tokens):
    expected = rapt.attention(*sequences, causal=True)
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=page_tokens)
    bounds = [0, 11, 12, 13, 20, 30]
    for first, last in zip(bounds, bounds[1:]):
        assert (step(cache, sequences, first, last) == expected[:, :, first:last]).all()
    assert cache.lengths.tolist() == [30, 30, 30]


def test_layout_of_tokens_before_heads(sequences):
    query, key, value = (array.swapaxes(1, 2) for array in sequences)
    cache = rapt.Cache(3, 2, 32, value_dim=64, layout="bshd")
    cache.append(key, value)
    expected = rapt.attention(*sequences, causal=True)
    assert (cache.attend(query) == expected.swapaxes(1, 2)).all()


@pytest.mark.parametrize("dtype, tolerance", [
    ("q8_0", 0.05), ("q5_1", 0.2), ("q4_0", 0.6), ("f8_e4m3", 0.2), ("i8", 0.05)])
def test_storage_types(sequences, dtype, tolerance):
    expected = rapt.attention(*sequences, causal=True)
    whole, parts = (rapt.Cache(3, 2, 32, value_dim=64, dtype=dtype, page_tokens=8) for _ in range(2))
    result = step(whole, sequences, 0, 30)
    assert 0 < numpy.abs(result - expected).max() < tolerance
    assert (numpy.concatenate([step(parts, sequences, 0, 17), step(parts, sequences, 17, 30)], 2) == result).all()
    assert rapt.Cache(1, 2, 32, dtype=dtype).nbytes < rapt.Cache(1, 2, 32).nbytes


def test_halves_are_numpys(sequences):
    query, key, value = sequences
    stored = rapt.Cache(3, 2, 32, value_dim=64, dtype="f16")
    assert (step(stored, sequences, 0, 30) == rapt.attention(
        query, key.astype(numpy.float16), value.astype(numpy.float16), causal=True)).all()
    mixed = rapt.Cache(3, 2, 32, value_dim=64, dtype="f16", value_dtype="f32")
    assert (step(mixed, sequences, 0, 30) == rapt.attention(query, key.astype(numpy.float16), value, causal=True)).all()


def test_lengths_and_truncate(sequences):
    query, key, value = sequences
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4)
    cache.append(key[:, :, :10], value[:, :, :10], lengths=[10, 3, 0])
    cache.lengths[0] = 99  # a copy
    assert cache.lengths.tolist() == [10, 3, 0]
    cache.truncate([5, 3, 0])
    cache.append(key[:, :, 5:9], value[:, :, 5:9], lengths=[4, 0, 0])
    expected = rapt.attention(query[:1, :, :9], key[:1, :, :9], value[:1, :, :9], causal=True)
    assert (cache.attend(query[:, :, 8:9])[0] == expected[0, :, 8:9]).all()
    with pytest.raises(ValueError, match="lengths: "):
        cache.truncate([10, 3, 0])
    with pytest.raises(ValueError, match=r"lengths: \[5, 0, 0\] are not 3 numbers from 0 to 4"):
        cache.append(key[:, :, :4], value[:, :, :4], lengths=[5, 0, 0])


def test_beams_share_pages(sequences):
    query, key, value = sequences
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4, pages=16)
    cache.append(key[:, :, :10], value[:, :, :10])
    cache.reorder([1, 1, 0, 1])  # the batch grows
    assert len(cache._pages.free) == 16 - 6
    new = [array[[1, 1, 0, 1], :, 10:11] + numpy.arange(4, dtype=numpy.float32).reshape(4, 1, 1, 1)
           for array in (query, key, value)]
    cache.append(*new[1:])
    result = cache.attend(new[0])
    for b, source in enumerate([1, 1, 0, 1]):
        keys = numpy.concatenate([key[source, :, :10], new[1][b]], 1)
        values = numpy.concatenate([value[source, :, :10], new[2][b]], 1)
        assert (rapt.attention(new[0][b], keys, values) == result[b]).all()
    cache.truncate(0)
    assert sorted(cache._pages.free) == list(range(len(cache._pages.users))) and (cache._pages.users == 0).all()
    with pytest.raises(ValueError, match="sources: "):
        cache.reorder([4])


def rotate(array, base):
    tokens, dim = array.shape[-2:]
    angles = numpy.arange(tokens)[:, None] * base ** (-2.0 * numpy.arange(dim // 2) / dim)
    a, b = array[..., :dim // 2].astype(float), array[..., dim // 2:].astype(float)
    return numpy.concatenate([a * numpy.cos(angles) - b * numpy.sin(angles),
                              b * numpy.cos(angles) + a * numpy.sin(angles)], -1).astype(numpy.float32)


def test_rotary(sequences):
    query, key, value = sequences
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=8, rotary=rapt.Rotary(10000.0))
    cache.append(key[:, :, :9], value[:, :, :9])
    cache.append(key[:, :, 9:], value[:, :, 9:])
    expected = rapt.attention(query, rotate(key, 10000.0), value, causal=True)
    assert numpy.abs(cache.attend(query) - expected).max() < 1e-5


def test_queries_are_rotated_where_asked(sequences):
    query, key, value = sequences
    rotary = rapt.Rotary(10000.0)
    expected = rapt.attention(rotate(query, 10000.0), rotate(key, 10000.0), value, causal=True)
    cache, tokens_first = (rapt.Cache(3, 2, 32, value_dim=64, page_tokens=8, rotary=rotary, layout=layout)
                           for layout in ("bhsd", "bshd"))
    cache.append(key[:, :, :9], value[:, :, :9])
    first = cache.attend(query[:, :, :9], rotate=True)
    cache.append(key[:, :, 9:], value[:, :, 9:])
    rest = cache.attend(query[:, :, 9:], rotate=True)
    assert numpy.abs(numpy.concatenate([first, rest], 2) - expected).max() < 1e-5
    assert (cache.attend(query, rotate=True)[:, :, 9:] == rest).all()
    assert (cache.attend(query[:, :, :9], rotate=True, query_position="top-left") == first).all()
    assert (cache.attend(query[:, :, 9:], rotate=True, query_position=[9, 9, 9]) == rest).all()
    fewer = cache.attend(query[:, :, 9:], rotate=True, query_position=9, query_lengths=[21, 5, 0])
    assert (fewer[0] == rest[0]).all() and (fewer[1, :, :5] == rest[1, :, :5]).all()
    query, key, value = (array.swapaxes(1, 2) for array in sequences)
    tokens_first.append(key, value)
    assert (tokens_first.attend(query, rotate=True) == cache.attend(sequences[0], rotate=True).swapaxes(1, 2)).all()
    assert (rotary.rotate(sequences[0], 0) == rotary.rotate(query, 0, layout="bshd").swapaxes(1, 2)).all()
    with pytest.raises(ValueError, match="rotate: the cache was made without rotary"):
        rapt.Cache(3, 8, 32).attend(sequences[0], rotate=True)
    with pytest.raises(ValueError, match=r"first_positions: its shape is \[2\]"):
        rotary.rotate(sequences[0], [0, 1])
    with pytest.raises(ValueError, match="rotary.base = 1"):
        rapt.Rotary(1.0).rotate(sequences[0], 0)


def test_lists_are_integers(sequences):
    cache = rapt.Cache(3, 2, 32, value_dim=64)
    cache.append(*sequences[1:])
    for call in (lambda: cache.truncate([2.9, 1, 1]), lambda: cache.truncate(numpy.array([1, numpy.nan, 1])),
                 lambda: cache.truncate(numpy.array([True, False, True])), lambda: cache.reorder([0.9, 1, 2]),
                 lambda: cache.reorder(numpy.array([0.0, 1, 2])), lambda: cache.reorder(numpy.array([True, False])),
                 lambda: cache.append(*sequences[1:], lengths=[1.5, 1, 1]),
                 lambda: cache.append(*sequences[1:], lengths=numpy.array([1.0, 1, 1]))):
        with pytest.raises(TypeError, match="expected (64-bit )?integers, not"):
            call()
        assert cache.lengths.tolist() == [30, 30, 30]
    with pytest.raises(ValueError, match=r"sources: \[\[0, 1, 2\]\] are not numbers from 0 to 2"):
        cache.reorder([[0, 1, 2]])


@pytest.mark.parametrize("arguments, error, text", [
    (dict(value_dim=0), ValueError, "value_dim: 0 is below 1"), (dict(pages=-1), ValueError, "pages: -1 is below 0"),
    (dict(value_dim=40, value_dtype="q8_0"), ValueError, "value_dim: 40 is not a whole number of blocks of q8_0"),
    (dict(value_dtype="x"), ValueError, "value_dtype: 'x' is not one of"), (dict(dtype="x"), ValueError, "^dtype: 'x'"),
    (dict(rotary=10000.0), TypeError, "rotary: 10000.0 is not a rapt.Rotary"),
    (dict(rotary=rapt.Rotary(10000.0, pairing="x")), ValueError, "pairing: 'x' is not one of halves, interleaved")])
def test_caches_that_cannot_be(arguments, error, text):
    with pytest.raises(error, match=text):
        rapt.Cache(1, 2, 32, **arguments)


def test_a_refused_append_leaves_the_cache_as_it_was(sequences):
    query, key, value = sequences
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4)
    assert (cache.attend(query) == 0).all()  # no keys
    cache.append(key[:, :, :9], value[:, :, :9])
    with pytest.raises(TypeError, match="value: its elements are float64"):
        cache.append(key[:, :, 9:], value[:, :, 9:].astype(numpy.float64))
    with pytest.raises(TypeError, match="key: its elements are int32; floats are required"):
        cache.append(key[:, :, 9:].astype(numpy.int32), value[:, :, 9:])
    assert cache.lengths.tolist() == [9, 9, 9] and len(cache._pages.free) == len(cache._pages.users) - 9
    cache.append(key[:, :, 9:], value[:, :, 9:])
    assert (cache.attend(query) == rapt.attention(query, key, value, causal=True)).all()


def test_threads_are_those_of_attention(sequences):
    query, key, value = sequences
    one, other = (rapt.Cache(3, 2, 32, value_dim=64) for _ in range(2))
    one.append(key, value, threads=None)
    for threads, error, text in ((0, ValueError, "0 is below 1"), (2**32 + 1, ValueError, "4294967297 does not fit"),
                                 ("2", TypeError, "an integer is required, not '2'")):
        with pytest.raises(error, match="threads: " + text):
            other.append(key, value, threads=threads)
    assert other.lengths.tolist() == [0, 0, 0] and other.nbytes == one.nbytes
    other.append(key, value, threads=2)
    assert (one.attend(query) == other.attend(query)).all()


@pytest.mark.parametrize("method", ["arrays", "grow", "slots"])
def test_an_interrupted_append_leaves_the_cache_as_it_was(sequences, monkeypatch, method):
    """Also if beams' shared pages were copied, and the copies are in the table already."""
    query, key, value = sequences
    expected, cache = (rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4, pages=40) for _ in range(2))
    for one in (expected, cache):
        one.append(key[:, :, :10], value[:, :, :10])
        one.reorder([0, 0, 1])
    for pool in (cache._key, cache._value):
        pool.rows[cache._pages.free] = 255  # read by copies that were not made
    of = cache._value if method == "arrays" else cache._pages
    work = getattr(of, method)

    def fail(*arguments):
        if method == "grow":
            work(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(of, method, fail)
        with pytest.raises(KeyboardInterrupt):
            cache.append(key[:, :, 10:12], value[:, :, 10:12])
    assert cache.lengths.tolist() == [10, 10, 10] and len(cache._pages.free) == 40 - 6
    assert (cache.attend(query) == expected.attend(query)).all()
    for one in (expected, cache):
        one.append(key[:, :, 10:], value[:, :, 10:])
    assert (cache.attend(query) == expected.attend(query)).all()


@pytest.mark.parametrize("function", ["empty", "zeros"])
@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_memory_that_is_missing_leaves_the_cache_as_it_was(sequences, monkeypatch, function, call):
    """Rows and scales of keys and values, then the table: whichever allocation fails, all keep their sizes."""
    query, key, value = sequences
    expected, cache = (rapt.Cache(3, 2, 32, value_dim=64, dtype="i8", page_tokens=4) for _ in range(2))
    expected.append(key, value)
    cache.append(key[:, :, :4], value[:, :, :4])
    allocate, calls = getattr(numpy, function), []

    def fail(*arguments, **options):
        calls.append(arguments)
        if len(calls) == call:
            raise MemoryError
        return allocate(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(numpy, function, fail)
        try:
            cache.append(key[:, :, 4:], value[:, :, 4:])
        except MemoryError:
            assert cache.lengths.tolist() == [4, 4, 4]
    pages = {array.shape[0] for array in cache._key.arrays() + cache._value.arrays()}
    assert len(pages) == 1 and pages.pop() >= len(cache._pages.users)
    cache.append(key[:, :, int(cache.lengths[0]):], value[:, :, int(cache.lengths[0]):])
    assert (cache.attend(query) == expected.attend(query)).all()


@pytest.mark.parametrize("change, text", [
    (dict(values=1), r"value pages: its shape is \[1, 2, 4, 32\]; beside key pages of \[3, 2, 4, 32\]"),
    (dict(scales=1), r"value scales: its shape is \[1, 2, 4\]"),
    (dict(row=16), "extent_bytes = 752")])
def test_pages_of_other_sizes_are_refused(random, change, text):
    """Keys and values share page numbers; memory outside a view must not be touched, though it exists."""
    key = random(1, 2, 4, 32)
    keys, values = numpy.zeros((3, 2, 4, 32), numpy.uint8), numpy.zeros((3, 2, 4, 32), numpy.uint8)
    scales = numpy.ones((3, 2, 4), numpy.float32), numpy.ones((3, 2, 4), numpy.float32)
    few = values[:change.get("values"), ..., :change.get("row")]
    pages = few, scales[0], scales[1][:change.get("scales")]
    stored = 13, 13, 32, 32
    with pytest.raises(ValueError, match=text):
        _core.append(key, key, numpy.arange(8, 12), keys, *pages, None, 0, stored, None, 0, 1)
    assert not values.any() and (scales[1] == 1).all()
    table = numpy.array([[2]], numpy.int32)
    arguments = [key, keys, few, numpy.empty_like(key), None, None, None, None, *pages[1:], None, None, None, None,
                 None, None, table, 0, (*stored, 4), False, None, None, None, None, 4, None, 0, None, 1]
    with pytest.raises(ValueError, match=text):
        _core.attention(*arguments)
    arguments[16] = None
    with pytest.raises(TypeError, match="pages: a table is required"):
        _core.attention(*arguments)


@pytest.mark.parametrize("change, text", [
    (dict(slots=numpy.arange(3)), r"slots: its shape is \[3\]; a number for each of 4 new tokens of 1 sequences"),
    (dict(slots=numpy.zeros(0, int)), r"slots: its shape is \[0\]"),
    (dict(positions=numpy.arange(5)), r"rotary_positions: its shape is \[5\]"),
    (dict(value=(1, 2, 3, 32)), r"value: its shape is \[1, 2, 3, 32\]; \[1, 2, 4, 32\] is required"),
    (dict(key=(1, 3, 4, 32)), r"key: its shape is \[1, 3, 4, 32\]; \[1, 2, 4, 32\] is required")])
def test_new_rows_of_other_sizes_are_refused(change, text):
    key, value = (numpy.zeros(change.get(name, (1, 2, 4, 32)), numpy.float32) for name in ("key", "value"))
    pages = numpy.ones((1, 2, 4, 128), numpy.uint8)
    rotary = rapt.Rotary(10000.0)._core() if "positions" in change else None
    with pytest.raises(ValueError, match=text):
        _core.append(key, value, change.get("slots", numpy.arange(4)), pages, pages.copy(), None, None,
                     change.get("positions"), 0, (1, 1, 32, 32), rotary, 0, 1)
    assert (pages == 1).all()


@pytest.mark.parametrize("batch, columns", [(1, 5), (8, 16)])
def test_results_may_stand_beside_the_table(random, monkeypatch, batch, columns):
    """Attention reads a table's row per sequence, and not a byte more."""
    cache = rapt.Cache(batch, 1, 8, page_tokens=1)
    rows = random(batch, 1, columns, 8)
    cache.append(rows, rows)
    memory = numpy.zeros(batch * (columns + 8), numpy.int32)
    table = memory[:batch * columns].reshape(batch, columns)
    table[:] = cache._pages.dense()
    monkeypatch.setattr(cache._pages, "dense", lambda: table)
    query, out = random(batch, 1, 1, 8), memory[batch * columns:].view(numpy.float32).reshape(batch, 1, 1, 8)
    assert (cache.attend(query, out=out) == rapt.attention(query, rows, rows)).all()
    for wrong in (table[1:], table[:, :0], table.reshape(-1)):
        monkeypatch.setattr(cache._pages, "dense", lambda: wrong)
        with pytest.raises(ValueError, match="pages: its shape is .* each of %d sequences" % batch):
            cache.attend(query)


def test_refusals(sequences):
    query, key, value = sequences
    cache = rapt.Cache(3, 2, 32, value_dim=64)
    with pytest.raises(ValueError, match=r"key: its shape is \[3, 8, 30, 32\]; \[3, 2, tokens, 32\] is required"):
        cache.append(query, value)
    with pytest.raises(ValueError, match="value: its shape"):
        cache.append(key, value[:, :, 1:])
    with pytest.raises(ValueError, match="dtype: 'q3'"):
        rapt.Cache(1, 1, 32, dtype="q3")
    with pytest.raises(ValueError, match="head_dim: 33 is not a whole number of blocks of q8_0"):
        rapt.Cache(1, 1, 33, dtype="q8_0")
    with pytest.raises(ValueError, match="kv_heads: 0"):
        rapt.Cache(1, 0, 32)
    cache.append(key, value)
    with pytest.raises(ValueError, match=r"query: its shape is \[2, 8, 30, 32\]; .* the first is 3 and the last 32"):
        cache.attend(query[:2])
