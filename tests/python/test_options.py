# SPDX-License-Identifier: MIT
"""Options of attention, plans and caches, each against an equivalent form."""
import numpy
import pytest
import rapt
from rapt import _core


def draw(*shape):
    return numpy.random.default_rng(sum(shape)).standard_normal(shape).astype(numpy.float32)


SEQUENCES = draw(3, 8, 30, 32), draw(3, 2, 30, 32), draw(3, 2, 30, 64)


def test_open_right():
    q, k, v = draw(1, 2, 6, 8), draw(1, 2, 6, 8), draw(1, 2, 6, 8)
    back = numpy.arange(6)[:, None] - numpy.arange(6)[None]
    assert (rapt.attention(q, k, v, window=(2, None)) == rapt.attention(q, k, v, mask=back <= 2)).all()


def test_key_position():
    q, k, v = draw(1, 2, 3, 8), draw(1, 2, 6, 8), draw(1, 2, 6, 8)
    expected = rapt.attention(q, k, v, causal=True, query_position=3)
    for first in (100, [100]):
        assert (rapt.attention(q, k, v, causal=True, query_position=103, key_position=first) == expected).all()


def test_plan_keeps_its_lists():
    q, k, v = SEQUENCES
    lengths, position = numpy.array([30, 4, 7]), numpy.array([0, 1, 2])
    options = dict(kv_lengths=lengths, causal=True, query_position=position)
    plan, expected = rapt.Plan(q, k, v, **options), rapt.attention(q, k, v, **options)
    lengths[:], position[:] = 1, 0
    assert (plan(q, k, v) == expected).all()


def results(returned):
    return returned if isinstance(returned, tuple) else (returned,)


def test_attend_has_the_options_of_attention():
    q, k, v = SEQUENCES
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=7)
    cache.append(k, v)
    n = numpy.ones(8, numpy.float32)
    for options in (dict(softcap=1.5), dict(scale=0.3), dict(window=4), dict(alibi=True), dict(sinks=n),
                    dict(causal=False), dict(mask=draw(30, 30) > -1), dict(bias=draw(8, 30, 30)),
                    dict(query_lengths=[3, 30, 0]),
                    dict(query_position="top-left"), dict(query_position=[1, 2, 3]), dict(lse=True),
                    dict(weights=True, weights_kind="raw")):
        got = cache.attend(q, **options)
        expected = rapt.attention(q, k, v, **{"causal": True, "query_position": "bottom-right", **options})
        rows = [3, 30, 0] if "query_lengths" in options else [30] * 3
        for a, b in zip(results(got), results(expected)):
            for i, r in enumerate(rows):
                assert (a[i, :, :r] == b[i, :, :r]).all(), options


def test_attend_has_the_orders_of_attention():
    """float16 has an additional one, with other bits."""
    q, k, v = (array.astype(numpy.float16) for array in SEQUENCES)
    cache = rapt.Cache(3, 2, 32, value_dim=64, dtype="f16", page_tokens=7)
    cache.append(k, v)
    expected = {number: rapt.attention(q, k, v, causal=True, numerics=number) for number in (0, 1, 2, -1)}
    assert not (expected[2] == expected[0]).all()
    for number, out in expected.items():
        assert (cache.attend(q, numerics=number) == out).all(), number
    with pytest.raises(ValueError, match="numerics = 9"):
        cache.attend(q, numerics=9)


def test_attend_has_the_instruction_sets_of_attention():
    q, k, v = SEQUENCES
    cache, expected = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=7), rapt.attention(*SEQUENCES, causal=True)
    cache.append(k, v)
    for isa in rapt.info()["isas"]:
        assert (cache.attend(q, isa=isa) == expected).all()
    with pytest.raises(ValueError, match="isa: 'mmx'"):
        cache.attend(q, isa="mmx")
    for isa in _core.ISAS.keys() - set(rapt.info()["isas"]):
        for call in (rapt.attention, lambda q, *_, **options: cache.attend(q, **options)):
            with pytest.raises((ValueError, RuntimeError, NotImplementedError), match=f"isa = {isa}: "):
                call(q, k, v, isa=isa)


def test_refusals_of_negative_numbers():
    _, k, v = SEQUENCES
    cache = rapt.Cache(3, 2, 32, value_dim=64)
    cache.append(k, v)
    for call in (lambda: cache.truncate([-1, 3, 0]), lambda: cache.reorder([0, -1]), lambda: cache.reorder([]),
                 lambda: cache.append(k, v, lengths=[-1, 0, 0])):
        with pytest.raises(ValueError, match="lengths: |sources: "):
            call()
    assert cache.lengths.tolist() == [30, 30, 30]


def test_rotary_of_a_part_and_interleaved():
    q, k, v = SEQUENCES
    a = 10000.0 ** (-numpy.arange(0, 16, 2) / 16) * numpy.arange(30)[:, None]
    c, s = numpy.cos(a), numpy.sin(a)
    for pairing in ("halves", "interleaved"):
        turned = k.astype(float).copy()
        x, y = (slice(0, 8), slice(8, 16)) if pairing == "halves" else (slice(0, 16, 2), slice(1, 16, 2))
        turned[..., x], turned[..., y] = k[..., x] * c - k[..., y] * s, k[..., y] * c + k[..., x] * s
        cache = rapt.Cache(3, 2, 32, value_dim=64, rotary=rapt.Rotary(10000.0, pairing=pairing, dim=16))
        cache.append(k, v)
        expected = rapt.attention(q, turned.astype(numpy.float32), v, causal=True)
        assert numpy.abs(cache.attend(q) - expected).max() < 1e-5


def test_shared_pages_take_new_ones():
    _, k, v = SEQUENCES
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4, pages=9)
    cache.append(k[:, :, :10], v[:, :, :10])
    cache.reorder([0, 0, 0])
    cache.append(k[:, :, 10:12], v[:, :, 10:12])
    cache.reorder([0, 0, 1, 1, 2, 2])  # full pools, with ends that are shared or not
    cache.append(*(numpy.concatenate([x[:, :, 12:13]] * 2) for x in (k, v)))
    assert cache.lengths.tolist() == [13] * 6


def test_full_pages_remain_shared():
    """Only a page with room is written to."""
    _, k, v = SEQUENCES
    cache = rapt.Cache(3, 2, 32, value_dim=64, page_tokens=4)
    cache.append(k[:, :, :8], v[:, :, :8])
    cache.reorder([0, 0, 0])
    cache.append(k[:, :, 8:9], v[:, :, 8:9])
    assert [table[:2] for table in cache._pages.tables] == [cache._pages.tables[0][:2]] * 3


def test_no_page_is_free_for_a_shared_end():
    _, k, v = SEQUENCES
    cache = rapt.Cache(2, 2, 32, value_dim=64, page_tokens=4, pages=2)
    cache.append(k[:2, :, :3], v[:2, :, :3])
    cache.reorder([0, 0, 1])
    cache.append(k[:, :, 3:4], v[:, :, 3:4])
    assert cache.lengths.tolist() == [4, 4, 4]


def test_booleans_of_numpy():
    q, k, v = SEQUENCES
    yes, no = numpy.True_, numpy.False_
    result, lse = rapt.attention(q, k, v, lse=yes, weights=no, alibi=yes, causal=yes)
    expected, other = rapt.attention(q, k, v, lse=True, alibi=True, causal=True)
    assert (result == expected).all() and (lse == other).all()
    assert (rapt.attention(q, k, v, alibi=no) == rapt.attention(q, k, v)).all()
