# SPDX-License-Identifier: MIT
"""PyTorch's tensors as results and as numbers."""
import pytest

torch = pytest.importorskip("torch")

import rapt  # noqa: E402


@pytest.fixture
def tensors(random):
    return [torch.from_numpy(random(*shape)) for shape in ((2, 8, 13, 32), (2, 2, 13, 32), (2, 2, 13, 16))]


def test_autograd_notices_results(tensors):
    """A tensor that a gradient needs must not change silently."""
    for written, run in (("out", rapt.attention), ("out", rapt.Plan(*tensors)), ("lse", rapt.attention)):
        shape = (2, 8, 13, 16) if written == "out" else (2, 8, 13)
        kept, weight = torch.ones(shape), torch.ones(shape, requires_grad=True)
        product = (weight * kept).sum()
        if run is not rapt.attention:
            run(*tensors, out=kept)
        else:
            run(*tensors, **{written: kept})
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()


def test_numbers_as_tensors(tensors):
    query, key, value = tensors
    last = query[:, :, :1]
    expected = rapt.attention(last, key, value, causal=True, query_position=4, kv_lengths=9)
    assert (rapt.attention(last, key, value, causal=True, query_position=torch.tensor(4),
                           kv_lengths=torch.tensor(9)) == expected).all()
    cache = rapt.Cache(2, 2, 32, value_dim=16)
    cache.append(key, value, lengths=torch.tensor(5))
    cache.truncate(torch.tensor(3))
    assert cache.lengths.tolist() == [3, 3]
