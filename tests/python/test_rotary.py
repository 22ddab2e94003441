# SPDX-License-Identifier: MIT
"""rapt.Rotary: scalings against the formulas of Transformers' modeling_rope_utils in double, and lengths."""
import numpy
import pytest
import rapt

DIM = 32
SCALED = [  # sizes at which all kinds of pairs turn visibly within the tokens below
    dict(),
    dict(attention_factor=1.25),
    dict(scaling="linear", factor=4.0),
    dict(scaling="linear", factor=4.0, attention_factor=0.75),
    dict(scaling="ntk", factor=4.0),
    dict(scaling="yarn", factor=4.0, original_length=640.0),
    dict(scaling="yarn", factor=4.0, original_length=640.0, low_factor=2.0, high_factor=20.0, attention_factor=1.5),
    dict(scaling="llama3", factor=8.0, original_length=640.0),
    dict(scaling="llama3", factor=8.0, original_length=640.0, low_factor=2.0, high_factor=16.0, attention_factor=1.5)]

# Some frequencies, and the factor, from Transformers for Llama 3.1 and for Qwen 2.5 with YaRN.
MODELS = [
    (dict(base=500000.0, scaling="llama3", factor=8.0, original_length=8192.0, low_factor=1.0, high_factor=4.0),
     {1: 8.146172338565e-01, 30: 1.371893567761e-03, 33: 3.126937503841e-04, 60: 5.677088100760e-07}, 1.0),
    (dict(base=1e6, scaling="yarn", factor=4.0, original_length=32768.0, low_factor=1.0, high_factor=32.0),
     {1: 8.058421877615e-01, 25: 4.131738022518e-03, 35: 2.462584069089e-04, 60: 5.928434264154e-07},
     1.13862943611199)]


def frequencies_of(dim, base, scaling="none", factor=0.0, original_length=0.0, low_factor=0.0, high_factor=0.0,
                   attention_factor=0.0):
    """Of pairs, and the factor of cosines and sines."""
    if scaling == "ntk":
        base = base * factor ** (dim / (dim - 2))
    plain = base ** (-numpy.arange(0, dim, 2) / dim)
    if scaling == "linear":
        return plain / factor, attention_factor or 1.0
    if scaling == "yarn":
        def pair_of(turns):
            return dim * numpy.log(original_length / (turns * 2 * numpy.pi)) / (2 * numpy.log(base))
        low = max(numpy.floor(pair_of(high_factor or 32.0)), 0)
        high = min(numpy.ceil(pair_of(low_factor or 1.0)), dim - 1)
        ramp = ((numpy.arange(dim // 2) - low) / (high - low)).clip(0, 1)
        return plain / factor * ramp + plain * (1 - ramp), attention_factor or 0.1 * numpy.log(factor) + 1
    if scaling == "llama3":
        low_factor, high_factor = low_factor or 1.0, high_factor or 4.0
        wavelengths = 2 * numpy.pi / plain
        smooth = (original_length / wavelengths - low_factor) / (high_factor - low_factor)
        between = (1 - smooth) * plain / factor + smooth * plain
        scaled = numpy.where(wavelengths > original_length / low_factor, plain / factor, between)
        return numpy.where(wavelengths < original_length / high_factor, plain, scaled), attention_factor or 1.0
    return plain, attention_factor or 1.0


def rotated(array, first, frequencies, factor):
    """Halves in double; token i is at first + i."""
    angles = (first + numpy.arange(array.shape[-2]))[:, None] * frequencies
    cosines, sines = numpy.cos(angles) * factor, numpy.sin(angles) * factor
    a, b = numpy.split(array.astype(float), 2, -1)
    return numpy.concatenate([a * cosines - b * sines, b * cosines + a * sines], -1)


@pytest.mark.parametrize("numbers, some, factor", MODELS)
def test_models(numbers, some, factor):
    """At a late position, where low frequencies show, and high ones are only as exact as float32."""
    expected, multiplier = frequencies_of(128, **numbers)
    assert abs(multiplier - factor) < 1e-12
    assert all(abs(expected[pair] - frequency) < 1e-10 * frequency for pair, frequency in some.items())
    first, row = 100000, numpy.repeat(numpy.array([1, 0], numpy.float32), 64).reshape(1, 1, 1, 128)
    result = rapt.Rotary(**numbers).rotate(row, first)
    errors = numpy.abs(result - rotated(row, first, expected, factor)).reshape(2, 64)
    assert (errors < 1e-6 + first * expected * 1e-7).all()


@pytest.mark.parametrize("numbers", SCALED)
def test_scalings_of_queries(random, numbers):
    array = random(2, 3, 50, DIM)
    result = rapt.Rotary(10000.0, **numbers).rotate(array, [0, 1000])
    for b, first in enumerate((0, 1000)):
        expected = rotated(array[b], first, *frequencies_of(DIM, 10000.0, **numbers))
        assert numpy.abs(result[b] - expected).max() < (first + 50) * 1e-6


@pytest.mark.parametrize("numbers", SCALED)
def test_scalings_of_keys(random, numbers):
    """Unit vectors as queries read the keys' numbers."""
    key, value, query = random(1, 2, 1000, DIM), random(1, 2, 1000, 8), numpy.eye(DIM, dtype=numpy.float32)
    cache = rapt.Cache(1, 2, DIM, value_dim=8, rotary=rapt.Rotary(10000.0, **numbers))
    for first, last in ((0, 300), (300, 1000)):
        cache.append(key[:, :, first:last], value[:, :, first:last])
    _, keys = cache.attend(numpy.broadcast_to(query, (1, 2, DIM, DIM)), causal=False, scale=1.0, weights=True,
                           weights_kind="raw")
    expected = rotated(key, 0, *frequencies_of(DIM, 10000.0, **numbers))
    assert numpy.abs(keys.swapaxes(2, 3) - expected).max() < 1000 * 1e-6


def nan_array(like, shape, as_float32=False):
    assert not as_float32
    if isinstance(like, numpy.ndarray):
        return numpy.full(shape, numpy.nan, like.dtype)
    return like.new_full(tuple(shape), float("nan"))


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_tokens_from_lengths_on_are_zeros(random, monkeypatch, kind, layout):
    """Whatever the result's memory held before."""
    array, lengths, rotary = random(3, 4, 6, DIM), [6, 2, 0], rapt.Rotary(10000.0)
    if layout == "bshd":
        array = numpy.ascontiguousarray(array.swapaxes(1, 2))
    expected = rotary.rotate(array, [5, 6, 7], layout=layout)
    if kind == "torch":
        array = pytest.importorskip("torch").from_numpy(array)
    monkeypatch.setattr(rapt._cache, "new_array", nan_array)
    result = numpy.asarray(rotary.rotate(array, [5, 6, 7], lengths=lengths, layout=layout))
    if layout == "bshd":
        result, expected = result.swapaxes(1, 2), expected.swapaxes(1, 2)
    for b, length in enumerate(lengths):
        assert (result[b, :, :length] == expected[b, :, :length]).all() and (result[b, :, length:] == 0).all()
