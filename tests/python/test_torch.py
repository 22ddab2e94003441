# SPDX-License-Identifier: MIT
"""PyTorch: tensors, the operator, scaled_dot_product_attention, batch invariance, threads."""
import threading
import warnings

import numpy
import pytest

torch = pytest.importorskip("torch")

import rapt.torch  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.attention.bias import causal_upper_left  # noqa: E402, a tensor with meaningless numbers

SDPA = torch.nn.functional.scaled_dot_product_attention


def test_tensors(tensors):
    expected = rapt.attention(*(tensor.numpy() for tensor in tensors), causal=True)
    result = rapt.attention(*tensors, causal=True)
    assert isinstance(result, torch.Tensor) and (result.numpy() == expected).all()
    swapped = [tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in tensors]
    assert (rapt.attention(*swapped, causal=True).numpy() == expected).all()
    assert rapt.attention(swapped[0], swapped[1], swapped[1]).is_contiguous()
    out = torch.zeros(2, 13, 8, 16)
    rapt.attention(*tensors, causal=True, out=out.transpose(1, 2))
    assert (out.transpose(1, 2).numpy() == expected).all()
    plan = rapt.Plan(*tensors, causal=True)
    assert (plan(*tensors).numpy() == expected).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(tensors, dtype):
    halves = [tensor.to(dtype) for tensor in tensors]
    result, lse = rapt.attention(*halves, lse=True)
    exact = rapt.attention(*(tensor.float() for tensor in halves))
    assert result.dtype == dtype and lse.dtype == torch.float32 and (result == exact.to(dtype)).all()
    assert rapt.attention(tensors[0], *(tensor.to(torch.float8_e4m3fn) for tensor in tensors[1:])).isfinite().all()


def test_refusals(tensors):
    query, key, value = tensors
    with pytest.raises(ValueError, match="key: it requires a gradient"):
        rapt.attention(query, key.clone().requires_grad_(), value)
    for name, tensor in (("sinks", torch.zeros(8)), ("alibi", torch.ones(8)), ("bias", torch.zeros(13, 13)),
                         ("out", torch.zeros(2, 8, 13, 16))):
        with pytest.raises(ValueError, match=f"{name}: it requires a gradient"):
            rapt.attention(query, key, value, **{name: torch.nn.Parameter(tensor)})
    for name in ("scale", "softcap"):
        with pytest.raises(ValueError, match=f"{name}: it requires a gradient"):
            rapt.attention(query, key, value, **{name: torch.tensor(0.5, requires_grad=True)})
    with pytest.raises(ValueError, match="key: it requires a gradient"):
        rapt.attention(query.numpy(), key.clone().requires_grad_(), value)
    with pytest.raises(ValueError, match="key: it requires a gradient"):
        rapt.Cache(2, 2, 32, value_dim=16).append(key.clone().requires_grad_(), value)
    with pytest.raises(TypeError, match="value: a dense tensor in the memory of the CPU"):
        rapt.attention(query, key, value.to("meta"), out=torch.empty(2, 8, 13, 16))
    with pytest.raises(TypeError, match="key: its elements are float64"):
        rapt.attention(query, key.double(), value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_sinks_and_slopes_of_any_type(tensors, dtype):
    """Models have them in their own type."""
    query, key, value = tensors
    numbers = torch.linspace(0, 1, 16, dtype=dtype)[::2]
    for name in ("sinks", "alibi"):
        expected = rapt.attention(query, key, value, **{name: numbers.float()})
        assert (rapt.attention(query, key, value, **{name: numbers}) == expected).all()


def test_forward_derivatives_are_not_lost(tensors):
    """rapt would leave them out; PyTorch's own operators compute them."""
    query, key, value = tensors[0][:, :2], tensors[1], tensors[2]
    forward = torch.autograd.forward_ad
    with forward.dual_level(), torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        dual = forward.make_dual(query, torch.ones_like(query))
        for compute in (rapt.attention, torch.ops.rapt.attention):
            with pytest.raises(ValueError, match="query: it has a tangent"):
                compute(dual, key, value)
            compute(query, key, value)  # has none
        expected = forward.unpack_dual(SDPA(dual, key, value)).tangent
        with rapt.torch.sdpa(), pytest.warns(RuntimeWarning, match="forward-mode differentiation is active"):
            rapt.torch._said.clear()
            result = forward.unpack_dual(SDPA(dual, key, value)).tangent
    assert expected.abs().max() > 0 and (result == expected).all()


def test_tensors_without_elements(tensors):
    """PyTorch calls them contiguous, and makes no contiguous copy."""
    query, key, value = (tensor[..., ::2] for tensor in tensors)
    assert rapt.attention(query[:, :, :0], key, value).shape == (2, 8, 0, 8)
    assert (rapt.attention(query, key[:, :, :0], value[:, :, :0]) == torch.zeros(2, 8, 13, 8)).all()
    mask = torch.ones(0, 1, dtype=torch.bool)
    with rapt.torch.sdpa():
        assert SDPA(query[:, :, :0], key, value, mask, enable_gqa=True).shape == (2, 8, 0, 8)


def test_operator(tensors):
    options = dict(causal=True, softcap=3.0, sinks=torch.ones(8))
    expected = rapt.attention(*tensors, **options)
    assert (torch.ops.rapt.attention(*tensors, **options) == expected).all()
    torch.library.opcheck(rapt.torch.attention, tuple(tensors), options,
                          test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))


class Layer(torch.nn.Module):
    def forward(self, query, key, value):
        return torch.ops.rapt.attention(query * 2, key, value, causal=True) + 1


def test_export_and_compile(tensors):
    expected = rapt.attention(tensors[0] * 2, *tensors[1:], causal=True) + 1
    tokens = torch.export.Dim("tokens", min=2, max=64)
    program = torch.export.export(Layer(), tuple(tensors), dynamic_shapes=[{2: tokens}] * 3)
    assert (program.module()(*tensors) == expected).all()
    shorter = [tensor[:, :, :7].contiguous() for tensor in tensors]
    assert (program.module()(*shorter) == expected[:, :, :7]).all()
    compiled = torch.compile(Layer(), backend="aot_eager", fullgraph=True)
    assert (compiled(*tensors) == expected).all()


def test_traces_that_would_record_nothing_are_refused(tensors):
    def function(query, key, value):
        return rapt.attention(query, key, value)

    with pytest.raises(TypeError, match="cannot be traced; torch.ops.rapt.attention can"):
        torch.jit.trace(function, tuple(tensors), check_trace=False)
    with pytest.raises(TypeError, match="cannot be traced"):
        torch.fx.experimental.proxy_tensor.make_fx(function)(*tensors)
    with torch._subclasses.FakeTensorMode() as mode, pytest.raises(TypeError, match="cannot be traced"):
        function(*map(mode.from_tensor, tensors))


def test_compiled_within_sdpa(tensors):
    query, key, value = tensors

    def function(query, key, value):
        return SDPA(query, key, value, is_causal=True, enable_gqa=True)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    with rapt.torch.sdpa():
        assert (compiled(query, key, value) == function(query, key, value)).all()


def test_sdpa_leaves_to_pytorch_what_it_cannot_do(tensors, monkeypatch):
    query, key, value = tensors[0][:, :2], tensors[1], tensors[2]
    monkeypatch.setattr(rapt.torch, "call", None)
    nested = [torch.nested.nested_tensor([tensor[0], tensor[1]], layout=torch.jagged)
              for tensor in (array.swapaxes(1, 2).contiguous() for array in (query, key, value))]
    masks = torch.stack([torch.ones(13, 13, dtype=torch.bool).tril(), torch.ones(13, 13, dtype=torch.bool)])

    def autocast():
        with torch.autocast("cpu", torch.bfloat16):
            return SDPA(query, key, value, causal_upper_left(13, 13))

    cases = {"nested": lambda: SDPA(*(tensor.transpose(1, 2) for tensor in nested)).transpose(1, 2).values(),
             "torch.func": lambda: torch.func.vmap(SDPA)(query, key, value),
             "a transformation": lambda: torch.func.vmap(lambda mask: SDPA(query, key, value, mask))(masks),
             "CausalBias": lambda: SDPA(query, key, value, causal_upper_left(13, 13)),
             "class CausalBias": autocast,
             "a size is 0": lambda: SDPA(query[..., :0], key[..., :0], value),
             "heads are larger than 1024": lambda: SDPA(query, key, value.repeat(1, 1, 1, 65)),
             "larger than 1024": lambda: SDPA(query.repeat(1, 1, 1, 33), key.repeat(1, 1, 1, 33), value),
             r"the query's shape is \[2, 0": lambda: SDPA(query[:, :0], key[:, :0], value[:, :0])}
    for text, case in cases.items():
        expected = case()
        with rapt.torch.sdpa(), pytest.warns(RuntimeWarning, match=text):
            rapt.torch._said.clear()
            result = case()
        assert ((result == expected) | expected.isnan()).all()


def test_autocast(tensors):
    with rapt.torch.sdpa(), torch.autocast("cpu", torch.bfloat16):
        result = SDPA(*tensors, enable_gqa=True)
    halves = [tensor.bfloat16() for tensor in tensors]
    assert result.dtype == torch.bfloat16 and (result == rapt.attention(*halves)).all()


def test_sdpa(tensors, random):
    query, key, value = tensors
    mask = torch.from_numpy(random(2, 1, 13, 13)) > 0
    mask[..., 0] = True
    cases = [dict(enable_gqa=True), dict(enable_gqa=True, is_causal=True), dict(enable_gqa=True, attn_mask=mask),
             dict(enable_gqa=True, attn_mask=mask.float(), scale=0.2),
             dict(enable_gqa=True, attn_mask=torch.ones(13, 1, dtype=torch.bool))]
    for case in cases + [dict(enable_gqa=True, is_causal=True, scale=1.0)]:
        few = query[:, :, :7] if "scale" in case and "attn_mask" not in case else query
        expected = SDPA(few, key, value, **case)
        with rapt.torch.sdpa(), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = torch.nn.functional.scaled_dot_product_attention(few, key, value, **case)
        assert (result - expected).abs().max() < 3e-6 and not (result == expected).all()
    with rapt.torch.sdpa(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rapt.torch._said.clear()
        for _ in range(2):
            grad = SDPA(query.clone().requires_grad_(), key, value, enable_gqa=True)
        assert grad.requires_grad and len(caught) == 1 and "gradients are required" in str(caught[0].message)
        with pytest.raises(RuntimeError):
            SDPA(query, key, value)


@torch.no_grad()
def test_dropout_is_pytorchs(tensors, monkeypatch):
    """Any amount; the same numbers are dropped."""
    monkeypatch.setattr(rapt.torch, "call", None)
    for dropout in (1e-6, 0.5, 1.0):
        torch.manual_seed(7)
        expected = SDPA(*tensors, dropout_p=dropout, enable_gqa=True)
        with rapt.torch.sdpa(), pytest.warns(RuntimeWarning, match="dropout is active"):
            rapt.torch._said.clear()
            torch.manual_seed(7)
            assert (SDPA(*tensors, dropout_p=dropout, enable_gqa=True) == expected).all()
        assert rapt.torch.obstacle(*tensors, dropout=dropout) == "dropout is active"
    assert rapt.torch.obstacle(*tensors, dropout=0.0) is None


def test_sdpa_refuses_what_pytorch_refuses(tensors):
    query, key, value = tensors
    mask = torch.ones(13, 13, dtype=torch.bool)
    calls = [((query, key, value), dict(attn_mask=mask, is_causal=True)),
             ((query, key, value), dict(attn_mask=mask[0])),
             ((query, key, value), dict(attn_mask=mask.half())),
             ((query.half(), key.half(), value.half()), dict(attn_mask=mask.bfloat16())),
             ((query, key.half(), value.half()), {}), ((query, key, value.bfloat16()), {})]
    for arguments, options in calls:
        with pytest.raises((RuntimeError, IndexError)) as expected:
            SDPA(*arguments, enable_gqa=True, **options)
        with rapt.torch.sdpa(), pytest.raises(expected.type) as raised:
            SDPA(*arguments, enable_gqa=True, **options)
        assert str(raised.value) == str(expected.value)


def test_sdpa_with_other_heads_of_values(tensors):
    """PyTorch repeats keys and values separately; rapt has one number of heads for both."""
    query, key, value = tensors
    expected = SDPA(query, key, value[:, :1], enable_gqa=True)
    with rapt.torch.sdpa(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rapt.torch._said.clear()
        for _ in range(2):
            result = SDPA(query, key, value[:, :1], enable_gqa=True)
        assert (result == expected).all()
        assert len(caught) == 1 and "the value's [2, 1, 13, 16]" in str(caught[0].message)
        with pytest.raises(RuntimeError):  # PyTorch's own
            SDPA(query[:, :4], key.repeat(1, 2, 1, 1), value)


@pytest.mark.parametrize("make, calls", [
    (lambda: torch.nn.MultiheadAttention(64, 4, batch_first=True), 1),
    (lambda: torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 1),
    (lambda: torch.nn.TransformerDecoderLayer(64, 4, 128, batch_first=True), 2)])
def test_multi_head_attention(random, monkeypatch, make, calls):
    layer, x, called = make().eval(), torch.from_numpy(random(2, 9, 64)), []
    call = rapt.torch.call
    monkeypatch.setattr(rapt.torch, "call", lambda *tensors, **options: called.append(1) or call(*tensors, **options))

    def run():
        if isinstance(layer, torch.nn.MultiheadAttention):
            return layer(x, x, x, need_weights=False)[0]
        return layer(x) if calls == 1 else layer(x, x)

    with torch.no_grad():
        expected = run()
        assert not called
        with rapt.torch.sdpa():
            result = run()
    assert (result - expected).abs().max() < 3e-6 and len(called) == calls


def test_batch_invariance(random, record_property):
    """A sequence has the same bits alone and in a batch of 64, and so has a token alone and in its prefill.
    PyTorch's own result is recorded beside it; it promises nothing of this kind."""
    tensors = [torch.from_numpy(random(*shape)) for shape in ((64, 8, 65, 64), (64, 8, 65, 64), (64, 8, 65, 64))]

    def differing(attend, **last):
        whole = attend(*tensors, True)
        alone = attend(*(tensor[17:18] for tensor in tensors), True)
        step = attend(tensors[0][17:18, :, -1:], tensors[1][17:18], tensors[2][17:18], False)
        return int((whole[17:18] != alone).sum()), int((whole[17:18, :, -1:] != step).sum())

    assert differing(lambda q, k, v, causal: rapt.attention(q, k, v, causal=causal)) == (0, 0)
    theirs = differing(lambda q, k, v, causal: SDPA(q, k, v, is_causal=causal))
    record_property("numbers in which PyTorch differs, batch and step", theirs)
    print("PyTorch: numbers that differ, alone from batch of 64:", theirs[0], "step from prefill:", theirs[1])


def test_threads_are_those_of_pytorch(random):
    assert rapt.info()["threads_kind"] == "openmp"
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert rapt.info()["threads"] == 3
        query = torch.from_numpy(random(1, 8, 600, 64))
        query @ query.transpose(2, 3)
        threads_before = count_threads()
        rapt.attention(query, query, query, causal=True)
        assert count_threads() == threads_before  # only PyTorch's team
        results = []
        worker = threading.Thread(target=lambda: results.append(rapt.attention(query, query, query, causal=True)))
        worker.start()
        worker.join()
        assert (results[0] == rapt.attention(query, query, query, causal=True)).all()
    finally:
        torch.set_num_threads(before)


def count_threads():
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Threads:"))


class Dataset(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        query = torch.from_numpy(numpy.random.default_rng(i).standard_normal((8, 300, 64), numpy.float32))
        return rapt.attention(query, query, query, causal=True)


def test_workers_of_data_loaders():
    """Processes forked by PyTorch after it computed with all threads."""
    expected = [Dataset()[i] for i in range(4)]
    loader = torch.utils.data.DataLoader(Dataset(), batch_size=1, num_workers=2, multiprocessing_context="fork")
    assert all((batch[0] == result).all() for batch, result in zip(loader, expected))
