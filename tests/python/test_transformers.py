# SPDX-License-Identifier: MIT
"""Models of Transformers with rapt's attention against their own ("eager")."""
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rapt.transformers  # noqa: E402
from models import DECODERS, ENCODERS, build, texts  # noqa: E402

TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def no_fallback(monkeypatch, request):
    """Tests of rapt's attention must not pass by PyTorch's."""
    monkeypatch.setattr(rapt.torch, "_said", set())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="rapt: PyTorch computes")
        yield


@pytest.fixture(params=DECODERS)
def decoders(request):
    return [build(DECODERS[request.param], attention) for attention in ("eager", "rapt")]


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
def test_logits(decoders, padded):
    inputs = texts(padded)
    expected, result = (model(**inputs).logits for model in decoders)
    rows = inputs["attention_mask"].bool()
    assert (expected - result)[rows].abs().max() < TOLERANCE
    assert expected[rows].std() > 0.1  # the comparison is meaningful


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
def test_greedy(decoders, padded):
    expected, result = (model.generate(**texts(padded), max_new_tokens=16, do_sample=False) for model in decoders)
    assert expected.tolist() == result.tolist()


@torch.no_grad()
def test_beams(decoders):
    options = dict(max_new_tokens=8, num_beams=3, do_sample=False)
    expected, result = (model.generate(**texts(True), **options) for model in decoders)
    assert expected.tolist() == result.tolist()


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
def test_static_cache(decoders, padded):
    if not decoders[0]._can_compile_fullgraph:
        pytest.skip("this model takes no static cache")
    options = dict(max_new_tokens=8, do_sample=False, cache_implementation="static", disable_compile=True)
    expected, result = (model.generate(**texts(padded), **options) for model in decoders)
    assert expected.tolist() == result.tolist()


@torch.no_grad()
def test_chunks(decoders):
    """A prompt in two parts: the second's queries do not begin at the first key."""
    inputs, logits = texts(False), []
    for model in decoders:
        first = model(input_ids=inputs["input_ids"][:, :10], use_cache=True)
        second = model(input_ids=inputs["input_ids"][:, 10:], past_key_values=first.past_key_values, use_cache=True)
        logits.append(second.logits)
    assert (logits[0] - logits[1]).abs().max() < TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss", "gpt2", "opt"])
def test_weights(name):
    models = [build(DECODERS[name], attention) for attention in ("eager", "rapt")]
    expected, result = (model(**texts(True), output_attentions=True).attentions for model in models)
    rows = texts(True)["attention_mask"].bool()
    assert len(expected) == len(result) == models[0].config.num_hidden_layers
    for layer, other in zip(expected, result):
        assert (layer - other).transpose(1, 2)[rows].abs().max() < 1e-5


@torch.no_grad()
def test_bfloat16():
    models = [build(DECODERS["llama"], attention).to(torch.bfloat16) for attention in ("eager", "rapt")]
    exact = build(DECODERS["llama"], "eager")(**texts(False)).logits
    errors = [(model(**texts(False)).logits.float() - exact).abs().mean() for model in models]
    assert errors[1] < 1.2 * errors[0]


@torch.no_grad()
@pytest.mark.parametrize("name", ENCODERS)
def test_encoders(name):
    models = [build(ENCODERS[name], attention) for attention in ("eager", "rapt")]
    inputs = texts(False)
    inputs["attention_mask"][1, 15:] = 0
    rows = inputs["attention_mask"].bool()
    expected, result = (model(**inputs).last_hidden_state for model in models)
    assert (expected - result)[rows].abs().max() < TOLERANCE


@torch.no_grad()
def test_t5():
    config = dict(vocab_size=97, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0)
    models = [build(lambda: (transformers.T5ForConditionalGeneration, transformers.T5Config(**config)), attention)
              for attention in ("eager", "rapt")]
    inputs = texts(False)
    inputs["attention_mask"][1, 15:] = 0
    expected, result = (model(**inputs, decoder_input_ids=inputs["input_ids"]).logits for model in models)
    assert (expected - result).abs().max() < TOLERANCE
    options = dict(max_new_tokens=8, do_sample=False)
    assert models[0].generate(**inputs, **options).tolist() == models[1].generate(**inputs, **options).tolist()


@torch.no_grad()
def test_whisper():
    config = transformers.WhisperConfig(
        vocab_size=97, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=40,
        max_target_positions=64, num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    models = [build(lambda: (transformers.WhisperForConditionalGeneration, config), attention)
              for attention in ("eager", "rapt")]
    sound = torch.randn(2, 8, 80, generator=torch.Generator().manual_seed(1))
    expected, result = (model(input_features=sound, decoder_input_ids=texts(False)["input_ids"]).logits
                        for model in models)
    assert (expected - result).abs().max() < TOLERANCE


@torch.no_grad()
def test_minilm():
    """A real model's weights, and an embedding by it."""
    weights = Path(__file__).parents[2] / "build-minilm" / "model.safetensors"
    if not weights.exists():
        pytest.skip("no build-minilm (./dev setup minilm)")
    safetensors = pytest.importorskip("safetensors.torch")
    config = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                  intermediate_size=1536)
    models = []
    for attention in ("eager", "rapt"):
        model = transformers.BertModel(transformers.BertConfig(**config, attn_implementation=attention)).eval()
        missing = model.load_state_dict(safetensors.load_file(weights), strict=False).missing_keys
        assert all("pooler" in key or "position_ids" in key for key in missing)
        models.append(model)
    tokens = torch.tensor([[101, 1996, 4248, 2829, 4419, 102, 0, 0], [101, 2019, 2590, 3295, 2003, 2023, 1012, 102]])
    expected, result = (model(input_ids=tokens, attention_mask=(tokens > 0).long()).last_hidden_state
                        for model in models)
    assert (expected - result)[tokens > 0].abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize("name", ["Bloom", "Mpt", "MPNet"])
def test_models_that_attend_by_themselves_are_refused(name):
    """They would add the bool mask to their scores."""
    small = dict(vocab_size=50, hidden_size=32, d_model=32, num_attention_heads=2, n_heads=2, num_hidden_layers=1,
                 n_layers=1, n_layer=1, n_head=2, intermediate_size=64)
    config = getattr(transformers, name + "Config")(**small)
    config._attn_implementation = "rapt"
    model = getattr(transformers, name + "Model")(config).eval()
    assert model.config._attn_implementation == "rapt"
    with pytest.raises(ValueError, match=f"{name}Config: Transformers' model computes attention itself"):
        model(input_ids=torch.ones(2, 5, dtype=torch.long), attention_mask=torch.tensor([[1] * 5, [0, 0, 1, 1, 1]]))


def test_a_part_that_attends_by_itself_is_refused():
    """Transformers names no model for its configuration."""
    config = transformers.TrOCRConfig(vocab_size=50, d_model=32, decoder_layers=1, decoder_attention_heads=2,
                                      decoder_ffn_dim=32, attn_implementation="rapt")
    with pytest.raises(ValueError, match="TrOCRConfig: Transformers' model computes attention itself"):
        transformers.TrOCRForCausalLM(config).eval()(torch.arange(3, 9)[None])


@torch.no_grad()
@pytest.mark.parametrize("masked", [False, True])
def test_chosen_keys(masked):
    """Models with an indexer name the keys that each query attends to."""
    generator = torch.Generator().manual_seed(2)
    query, key, value = torch.randn(3, 2, 4, 7, 16, generator=generator)
    indices = torch.rand(2, 7, 7, generator=generator).topk(4).indices
    seen = torch.ones(2, 1, 7, 7, dtype=torch.bool).tril()
    chosen = torch.zeros(2, 7, 7, dtype=torch.bool).scatter(-1, indices, True)[:, None]
    mask = seen if masked else None
    result, _ = rapt.transformers.attention_forward(torch.nn.Module(), query, key, value, mask, indices=indices)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, seen & chosen)
    rows = (seen & chosen).any(-1).expand(2, 4, 7)
    assert (result.transpose(1, 2) - expected)[rows].abs().max() < 1e-5


@torch.no_grad()
def test_windows_are_those_of_masks():
    """Transformers gives no mask only where nothing but causal acts."""
    query, key, value = torch.randn(3, 1, 4, 9, 16, generator=torch.Generator().manual_seed(2))
    results = [rapt.transformers.attention_forward(torch.nn.Module(), query, key, value, None, sliding_window=window)[0]
               for window in (None, 3)]
    assert torch.equal(*results)


def test_parts_unknown_to_rapt_are_refused():
    query, key, value = torch.randn(3, 1, 4, 5, 16)
    for name in ("block_indices", "sinks"):
        with pytest.raises(ValueError, match=f"rapt does not know its {name}"):
            rapt.transformers.attention_forward(torch.nn.Module(), query, key, value, None, **{name: torch.ones(4)})


@torch.no_grad()
@pytest.mark.skipif(not hasattr(transformers, "Gemma4TextConfig"), reason="an older Transformers")
def test_last_queries_of_shared_keys():
    """Gemma 4's later layers may attend with fewer queries than the mask was made for."""
    sizes = dict(vocab_size=97, vocab_size_per_layer_input=97, hidden_size=64, hidden_size_per_layer_input=16,
                 intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                 global_head_dim=16, sliding_window=6, num_kv_shared_layers=2, pad_token_id=0, bos_token_id=1,
                 eos_token_id=2, layer_types=["sliding_attention", "full_attention"] * 2)
    model = build(lambda: (transformers.Gemma4ForCausalLM, transformers.Gemma4TextConfig(**sizes)), "rapt")
    tokens = texts(False)["input_ids"]
    assert (model(tokens).logits[:, -4:] - model(tokens, logits_to_keep=4).logits).abs().max() < TOLERANCE


@torch.no_grad()
def test_masks_of_numbers_beside_position_biases():
    generator = torch.Generator().manual_seed(2)
    query, key, value = torch.randn(3, 2, 4, 5, 16, generator=generator)
    mask, bias = torch.randn(2, 1, 5, 5, generator=generator), torch.randn(1, 4, 5, 5, generator=generator)
    result, _ = rapt.transformers.attention_forward(torch.nn.Module(), query, key, value, mask, position_bias=bias)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask + bias)
    assert (result.transpose(1, 2) - expected).abs().max() < 1e-5


@pytest.mark.filterwarnings("default")
def test_sinks_alone_may_require_gradients():
    query, key, value = torch.randn(3, 1, 4, 5, 16, generator=torch.Generator().manual_seed(2))
    sinks = torch.nn.Parameter(torch.zeros(4))
    with pytest.warns(RuntimeWarning, match="gradients are required"):
        result, _ = rapt.transformers.attention_forward(torch.nn.Module().eval(), query, key, value, None, s_aux=sinks)
    result.sum().backward()
    assert (sinks.grad != 0).all()


@pytest.mark.filterwarnings("default")
def test_falls_back_with_one_warning():
    for name in ("llama", "gemma2", "gpt_oss"):
        rapt.torch._said.clear()
        models = [build(DECODERS[name], attention) for attention in ("eager", "rapt")]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            expected, result = (model(**texts(True)).logits for model in models)
        said = [str(warning.message) for warning in caught if "rapt" in str(warning.message)]
        assert len(said) == 1 and "gradients are required" in said[0]
        rows = texts(True)["attention_mask"].bool()
        assert (expected - result)[rows].abs().max() < TOLERANCE
        for model, logits in zip(models, (expected, result)):
            logits[rows].square().sum().backward()
        gradients = [model.model.layers[0].self_attn.q_proj.weight.grad for model in models]
        assert (gradients[0] - gradients[1]).abs().max() < 1e-3 * gradients[0].abs().max()
