# SPDX-License-Identifier: MIT
"""Textbook attention in double, and random arrays."""
import numpy
import pytest


def attend(query, key, value, allowed=True, bias=0.0, scale=None, softcap=0.0, sinks=None):
    """[batch, heads, tokens, dim] in float64; allowed and bias broadcast to [batch, heads, queries, keys]."""
    query, key, value = (numpy.asarray(array, numpy.float64) for array in (query, key, value))
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat(group, 1), value.repeat(group, 1)
    scores = query @ key.swapaxes(2, 3) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * numpy.tanh(scores / softcap)
    scores = numpy.where(allowed, scores + bias, -numpy.inf)
    top = scores.max(-1, keepdims=True)
    if sinks is not None:
        sinks = numpy.asarray(sinks, numpy.float64).reshape(1, -1, 1, 1)
        top = numpy.maximum(top, sinks)
    top = numpy.where(numpy.isfinite(top), top, 0)
    weights = numpy.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + (0 if sinks is None else numpy.exp(sinks - top))
    return weights / numpy.where(total == 0, 1, total) @ value


@pytest.fixture
def reference():
    return attend


@pytest.fixture
def random():
    generator = numpy.random.default_rng(1)

    def make(*shape):
        return generator.standard_normal(shape, numpy.float32)

    return make


@pytest.fixture
def tensors(random):
    """Query, key and value of PyTorch."""
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(random(*shape)) for shape in ((2, 8, 13, 32), (2, 2, 13, 32), (2, 2, 13, 16))]
