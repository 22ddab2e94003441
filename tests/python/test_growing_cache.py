# SPDX-License-Identifier: MIT
"""rapt.transformers.GrowingCache beside Transformers' DynamicCache: the same bits, without its copies."""
import copy
import io

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rapt.transformers  # noqa: E402
from models import DECODERS, build, texts  # noqa: E402
from rapt._growing import DynamicLayer, GrowingLayer  # noqa: E402
from rapt.transformers import GrowingCache  # noqa: E402
from transformers import DynamicCache, EncoderDecoderCache  # noqa: E402

BOTH = DynamicCache, GrowingCache
MEMORY_GROWS = dict(max_new_tokens=80, do_sample=False)  # at 88 of the 104 tokens
WAYS = {"greedy": (False, {}), "padded": (True, {}), "beams": (True, dict(num_beams=3, num_return_sequences=2))}


def generated(model, cache, padded=False, **options):
    """Tokens, logits, and scores of beams."""
    out = model.generate(**texts(padded), past_key_values=cache, return_dict_in_generate=True, output_logits=True,
                         output_scores=True, **MEMORY_GROWS, **options)
    return [out.sequences, *out.logits, *([out.sequences_scores] if "num_beams" in options else [])]


def equal(some, others):
    return len(some) == len(others) and all(torch.equal(*pair) for pair in zip(some, others))


def tokens_of(count, length=1, seed=0, **more):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, length, 8, generator=generator, **more) for _ in range(count)]


def pair_of_layers(length=5):
    """The same tokens in a layer of Transformers and in rapt's."""
    layers = DynamicLayer(), GrowingLayer()
    for layer in layers:
        layer.update(*tokens_of(2, length))
    return layers


def same(layers):
    keys, values = ([getattr(layer, name) for layer in layers] for name in ("keys", "values"))
    return torch.equal(*keys) and torch.equal(*values) and layers[0].get_seq_length() == layers[1].get_seq_length()


@torch.no_grad()
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DECODERS)
def test_bits(name, way):
    padded, options = WAYS[way]
    model = build(DECODERS[name], "rapt")
    caches = [kind(config=model.config) for kind in BOTH]
    expected, result = (generated(model, cache, padded, **options) for cache in caches)
    assert equal(expected, result)
    for theirs, ours in zip(*(cache.layers for cache in caches)):
        assert type(ours) is (GrowingLayer if type(theirs) is DynamicLayer else type(theirs))


@torch.no_grad()
@pytest.mark.parametrize("name, attention", [("llama", "sdpa"), ("llama", "eager"), ("gpt2", "sdpa"),
                                             ("gemma2", "eager")])
def test_other_attentions(name, attention):
    model = build(DECODERS[name], attention)
    expected, result = (generated(model, kind(config=model.config)) for kind in BOTH)
    assert torch.equal(expected[0], result[0])
    assert all((one - other).abs().max() < 1e-5 for one, other in zip(expected[1:], result[1:]))


@torch.no_grad()
@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_assisted(name, monkeypatch):
    """crop removes a wrong model's candidates."""
    model, assistant = build(DECODERS[name], "rapt"), build(DECODERS[name], "rapt")
    assistant.generation_config.num_assistant_tokens = 4
    assistant.generation_config.assistant_confidence_threshold = 0  # that many, confident or not
    assistant.lm_head.weight = torch.nn.Parameter(assistant.lm_head.weight.roll(1, 0))
    removed, crop = [], GrowingLayer.crop
    monkeypatch.setattr(GrowingLayer, "crop", lambda layer, count: (removed.append(count), crop(layer, count)))
    results = []
    for kind in BOTH:
        cache = kind(config=model.config)
        results.append(model.generate(texts(False)["input_ids"][:1], past_key_values=cache, assistant_model=assistant,
                                      max_new_tokens=20, do_sample=False))
    assert torch.equal(*results) and any(removed)


@torch.no_grad()
def test_reads_in_place(monkeypatch):
    """Attention gets the layer's own memory, and the model does not move it."""
    seen, call = [], rapt.transformers.call
    monkeypatch.setattr(rapt.transformers, "call", lambda query, key, value, **more: (
        seen.append((key.data_ptr(), value.data_ptr())), call(query, key, value, **more))[1])
    model = build(DECODERS["llama"], "rapt")
    cache = GrowingCache(model.config, capacity=104)
    generated(model, cache)
    assert set(seen) == {(layer.keys.data_ptr(), layer.values.data_ptr()) for layer in cache.layers}


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_grows_rarely(dtype):
    layer, addresses = GrowingLayer(), []
    for number in range(2000):
        keys, values = layer.update(*tokens_of(2, seed=number, dtype=dtype))
        assert keys.shape == values.shape == (2, 3, number + 1, 8) and keys is layer.keys and values is layer.values
        addresses.append((keys.data_ptr(), values.data_ptr()))
        taken = keys.untyped_storage().nbytes() // (2 * 3 * 8 * keys.element_size())
        assert taken <= max(1.5 * (number + 1), number + 65)
    moves = [number for number in range(1, 2000) if addresses[number] != addresses[number - 1]]
    assert len(moves) <= 9 and all(after >= 1.5 * before for before, after in zip(moves[1:], moves[2:]))
    for number in (0, 64, 65, 1999):
        key, value = tokens_of(2, seed=number, dtype=dtype)
        assert torch.equal(layer.keys[:, :, number:number + 1], key)
        assert torch.equal(layer.values[:, :, number:number + 1], value)


@torch.no_grad()
def test_capacity():
    cache = GrowingCache(capacity=300)
    keys, values = cache.update(*tokens_of(2), 1)
    assert [type(layer) for layer in cache.layers] == [GrowingLayer] * 2
    assert keys.untyped_storage().nbytes() == 300 * 2 * 3 * 8 * 4
    for number in range(299):
        more = cache.update(*tokens_of(2), 1)
        assert (more[0].data_ptr(), more[1].data_ptr()) == (keys.data_ptr(), values.data_ptr())
    assert cache.update(*tokens_of(2), 1)[0].data_ptr() != keys.data_ptr() and cache.get_seq_length(1) == 301


@torch.no_grad()
@pytest.mark.parametrize("change", [
    lambda layer: layer.reorder_cache(torch.tensor([1, 0])), lambda layer: layer.reorder_cache(torch.tensor([1, 1])),
    lambda layer: layer.batch_repeat_interleave(2), lambda layer: layer.batch_select_indices(torch.tensor([-1])),
    lambda layer: layer.crop(-2), lambda layer: layer.crop(-5), lambda layer: layer.reset(),
    lambda layer: (layer.offload(), layer.prefetch()), lambda layer: setattr(layer, "keys", layer.keys.clone()),
    lambda layer: setattr(layer, "keys", layer.keys.transpose(0, 1).contiguous().transpose(0, 1)),
    lambda layer: setattr(layer, "keys", layer.keys[:, :, ::2]),
    lambda layer: setattr(layer, "keys", layer.keys.half())])
def test_changes(change):
    """Inherited methods replace keys and values, and the next tokens follow those."""
    layers = pair_of_layers()
    for _ in range(2):
        for layer in layers:
            change(layer)
        assert layers[0].keys is layers[1].keys is None or same(layers)
        batch = layers[0].keys.shape[0] if layers[0].keys is not None else 2
        for seed in (1, 2):
            new = [tensor[:1].expand(batch, -1, -1, -1) for tensor in tokens_of(2, 4, seed)]
            for layer in layers:
                layer.update(*new)
            assert same(layers)


@torch.no_grad()
def test_crop_keeps_the_memory_and_reset_returns_it():
    layer = pair_of_layers()[1]
    address = layer.keys.data_ptr()
    layer.crop(-3)
    layer.update(*tokens_of(2))
    assert layer.keys.data_ptr() == address and layer.keys.shape[2] == 3
    layer.reset()
    assert layer._rooms[0].memory is layer._rooms[1].memory is None


@torch.no_grad()
def test_offload_returns_the_memory(monkeypatch):
    layer = pair_of_layers()[1]
    monkeypatch.setattr(DynamicLayer, "offload", lambda layer: setattr(layer, "keys", layer.keys.clone()))
    layer.offload()  # as if from another device
    assert layer._rooms[0].memory is None and layer._rooms[1].memory is not None


@torch.no_grad()
def test_beams_are_copied_once():
    layer = pair_of_layers()[1]
    layer.reorder_cache(torch.tensor([1, 0]))
    address = layer.keys.data_ptr()
    layer.update(*tokens_of(2))
    assert layer.keys.data_ptr() == address


def saved(layer):
    file = io.BytesIO()
    torch.save(layer, file)
    assert len(file.getvalue()) < 1.5 * 2 * layer.keys.nbytes  # the room is not in it
    file.seek(0)
    return torch.load(file, weights_only=False)


@torch.no_grad()
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, saved])
def test_copies(way):
    """A copy and its original continue with different tokens."""
    layers = pair_of_layers(50)
    copies = [way(layer) for layer in layers]
    for some, seed in ((layers, 1), (copies, 2), (layers, 3)):
        for layer in some:
            layer.update(*tokens_of(2, 1, seed))
    assert same(layers) and same(copies)


@torch.no_grad()
def test_shared_tensors():
    """A cache's prefix as the start of another: neither writes where the other reads."""
    layers, others = pair_of_layers(), (DynamicLayer(), GrowingLayer())
    for layer, other in zip(layers, others):
        other.update(*tokens_of(2, 5, 7))
        other.keys, other.values = layer.keys, layer.values
    for some, seed in ((others, 1), (layers, 2), (others, 3)):
        for layer in some:
            layer.update(*tokens_of(2, 1, seed))
    assert same(layers) and same(others)


def test_gradients():
    """A backward pass through two updates reads the first one's keys unchanged."""
    gradients = []
    for layer in (DynamicLayer(), GrowingLayer()):
        tokens = [tensor.requires_grad_() for tensor in tokens_of(4)]
        loss = 0
        for new in (tokens[:2], tokens[2:]):
            keys, values = layer.update(*new)
            loss = loss + (keys * keys * values).sum()
        loss.backward()
        gradients.append([tensor.grad for tensor in tokens])
    assert equal(*gradients)


def test_modes_in_turns():
    """Tokens of inference_mode, of no_grad, and with gradients: one mode's memory is not written in another."""
    layers = DynamicLayer(), GrowingLayer()
    modes = torch.inference_mode, torch.no_grad, torch.inference_mode, torch.enable_grad, torch.no_grad
    for seed, mode in enumerate(modes):
        with mode():
            for layer in layers:
                layer.update(*tokens_of(2, 2, seed))
            assert same(layers)


@torch.no_grad()
def test_compiled():
    """Without a graph break, as addresses of memory would cause."""
    layers = pair_of_layers()
    for layer in layers:
        torch.compile(layer.update, backend="eager", fullgraph=True)(*tokens_of(2))
        layer.update(*tokens_of(2))
    assert same(layers)


@torch.no_grad()
def test_encoder_decoder():
    config = transformers.T5Config(vocab_size=97, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
                                   decoder_start_token_id=0, eos_token_id=None)
    model = build(lambda: (transformers.T5ForConditionalGeneration, config), "rapt")
    for options in ({}, dict(num_beams=3, num_return_sequences=2)):
        caches = [EncoderDecoderCache(kind(config=config), DynamicCache(config=config)) for kind in BOTH]
        expected, result = (generated(model, cache, True, **options) for cache in caches)
        assert equal(expected, result)
        assert all(type(layer) is GrowingLayer for layer in caches[1].self_attention_cache.layers)


@torch.no_grad()
def test_whisper():
    config = transformers.WhisperConfig(
        vocab_size=97, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=40,
        max_target_positions=128, num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)
    model = build(lambda: (transformers.WhisperForConditionalGeneration, config), "rapt")
    sound, tokens = torch.randn(2, 8, 80, generator=torch.Generator().manual_seed(1)), texts(False)["input_ids"]
    results = []
    for kind in BOTH:
        cache = EncoderDecoderCache(kind(config=config), DynamicCache(config=config))
        results.append([model(input_features=sound, decoder_input_ids=part, past_key_values=cache).logits
                        for part in (tokens[:, :9], tokens[:, 9:10], tokens[:, 10:11])])
    assert equal(*results)


@torch.no_grad()
def test_tokens_that_do_not_fit():
    """They would be broadcast, or rounded; Transformers refuses the former and widens for the latter."""
    for wrong in (tokens_of(2)[0][:1], tokens_of(2)[0][:, :1], tokens_of(2)[0][..., :1]):
        for layer in pair_of_layers():
            for arguments in ((wrong, tokens_of(1)[0]), (tokens_of(1)[0], wrong)):
                with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
                    layer.update(*arguments)
    layers = pair_of_layers()
    for layer in layers:
        layer.update(*tokens_of(2, 1, 1, dtype=torch.float64))
        layer.update(*tokens_of(2, 1, 2))
    assert same(layers) and layers[1].keys.dtype == torch.float64


def test_options_and_errors(monkeypatch):
    model = build(DECODERS["gemma2"], "rapt")
    with pytest.raises(TypeError, match="config: it is a Gemma2ForCausalLM"):
        GrowingCache(model)
    with pytest.raises(ValueError, match="capacity: -1 is below 0"):
        GrowingCache(model.config, capacity=-1)
    with torch.no_grad():
        caches = [kind(ddp_cache_data=[tokens_of(2, 5), tokens_of(2, 7)]) for kind in BOTH]
        assert all(same(layers) for layers in zip(*(cache.layers for cache in caches)))
        assert [type(layer) for layer in caches[1].layers] == [GrowingLayer] * 2
    monkeypatch.setattr(rapt._growing, "HAS_LAYERS", False)
    with pytest.raises(ImportError, match="requires Transformers 4.56"):
        GrowingCache(model.config)
