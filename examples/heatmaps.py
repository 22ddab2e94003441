# SPDX-License-Identifier: MIT
"""What the heads of a Transformers model look at: a tutorial in cells, for an editor that knows "# %%", or as a script:

    python examples/heatmaps.py [MODEL or FOLDER] [TEXT] [OUT.png]

Without a model it takes a small Llama with random weights, whose heads look at nothing in particular.
"""
# %% A model with rapt's attention. Importing rapt.transformers makes the name "rapt" known; nothing else changes.
import struct
import sys
import zlib

import numpy
import torch
import transformers

import rapt.transformers  # noqa: F401

if len(sys.argv) > 4:
    sys.exit("usage: heatmaps.py [MODEL or FOLDER] [TEXT] [OUT.png]")
name, text, out = (sys.argv[1:] + ["", "The quick brown fox jumps over the lazy dog.", "heads.png"][len(sys.argv) - 1:])
if name:
    tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    model = transformers.AutoModel.from_pretrained(name, attn_implementation="rapt")
    inputs = tokenizer(text, return_tensors="pt")
else:
    config = transformers.LlamaConfig(vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
                                      num_attention_heads=8, num_key_value_heads=2, attn_implementation="rapt")
    torch.manual_seed(1)
    model = transformers.LlamaModel(config)
    inputs = {"input_ids": torch.tensor([list(text.encode())])}

# %% The weights of every layer: [batch, heads, queries, keys]. rapt computes them beside the result, from the same
# scores, so a row of them sums to 1, and the masked ones are 0.
model.eval()
with torch.no_grad():
    layers = model(**inputs, output_attentions=True).attentions
for number, weights in enumerate(layers):
    reach = (weights * numpy.arange(weights.shape[-1])).sum(-1).mean()
    print(f"layer {number}: {weights.shape[1]} heads, rows sum to {weights.sum(-1).mean():.6f}, "
          f"look at key {reach:.1f} on average")

# %% The same numbers without a model, from any queries and keys: rapt.attention returns them where weights=True.
query, key = (numpy.random.default_rng(i).standard_normal((1, 8, 6, 16), numpy.float32) for i in (1, 2))
_, weights = rapt.attention(query, key, key, causal=True, weights=True)
print("a head of random queries and keys, causal:")
print(numpy.array2string(weights[0, 0], precision=2, suppress_small=True))


# %% A picture: a row of squares for each layer, one square for each head, dark where a query (down) looks at a key
# (across). PNG is a header, compressed rows, and an end.
def png(pixels):
    """Bytes of an image of [height, width, 3] uint8."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape[:2]
    rows = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), pixels.reshape(height, -1)], 1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def picture_of(layers, gap=6):
    """All heads of all layers; each row of weights is divided by its largest."""
    light, dark = numpy.array([247, 251, 255.0]), numpy.array([8, 48, 107.0])
    queries = layers[0].shape[2]
    scale = max(1, 120 // queries)
    rows = []
    for layer in layers:
        heads = []
        for head in layer[0].float().numpy():
            shade = numpy.kron(head / head.max(-1, keepdims=True), numpy.ones((scale, scale)))[..., None]
            square = light + (dark - light) * shade
            heads += [square, numpy.full((square.shape[0], gap, 3), 255.0)]
        row = numpy.concatenate(heads, 1)
        rows += [row, numpy.full((gap, row.shape[1], 3), 255.0)]
    return numpy.concatenate(rows, 0).round().astype(numpy.uint8)


# %%
pixels = picture_of(layers)
with open(out, "wb") as file:
    file.write(png(pixels))
print(f"{out}: {pixels.shape[1]} x {pixels.shape[0]} pixels, a row for each of {len(layers)} layers")
