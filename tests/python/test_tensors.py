# SPDX-License-Identifier: MIT
"""PyTorch's tensors as results and as numbers."""
import pytest

torch = pytest.importorskip("torch")

import rapt.torch  # noqa: E402


def test_autograd_notices_results(tensors):
    """A tensor that a gradient needs must not change silently."""
    query, key, value = tensors
    cache = rapt.Cache(2, 2, 32, value_dim=16)
    cache.append(key, value)
    runs = {"a call": lambda **given: rapt.attention(query, key, value, **given),
            "a plan": lambda **given: rapt.Plan(query, key, value, lse="lse" in given)(query, key, value, **given),
            "a cache": lambda **given: cache.attend(query, **given)}
    for name, run in runs.items():
        written = "lse" if name == "a call" else "out"
        shape = (2, 8, 13, 16) if written == "out" else (2, 8, 13)
        kept, weight = torch.ones(shape), torch.ones(shape, requires_grad=True)
        product = (weight * kept).sum()
        run(**{written: kept})
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


@pytest.mark.filterwarnings("ignore:rapt. PyTorch computes")
def test_scales_that_are_not_finite(tensors):
    query, key, value = tensors[0], tensors[1].repeat(1, 4, 1, 1), tensors[2].repeat(1, 4, 1, 1)
    for scale in (float("inf"), float("nan"), 1e300):
        expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=scale)
        with rapt.torch.sdpa():
            result = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=scale)
        assert torch.equal(result.isnan(), expected.isnan())


def test_negative_views(tensors):
    """Their memory holds the opposite numbers: of the imaginary part of a conjugate, for example."""
    query, key, value = tensors
    views = [torch._neg_view(tensor.clone()) for tensor in tensors]
    expected = rapt.attention(-query, -key, -value)
    assert torch.equal(rapt.attention(*views), expected)
    assert torch.equal(rapt.attention(*(view.transpose(1, 2) for view in views), layout="bshd"),
                       expected.transpose(1, 2))
    lse, alone = torch._neg_view(torch.ones(2, 8, 13)), torch.ones(2, 8, 13)
    with pytest.raises(TypeError, match=r"lse: it is a negative view \(is_neg\(\)\), which rapt does not write"):
        rapt.attention(query, key, value, lse=lse)
    assert torch.equal(-lse, alone)
