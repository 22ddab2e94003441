# SPDX-License-Identifier: MIT
"""The promise as a picture: one hash for rapt, however a sequence is computed; several for the others."""
import matplotlib.pyplot as plt

WAYS = {"prefill": "prefill, one thread", "threads": "prefill, all cores", "batch": "beside two other sequences",
        "decode": "decode, token by token", "older": "AVX2 only", "oldest": "no AVX", "arm": "ARM (NEON, emulated)"}
NOT_RUN = "not run"  # as bits.py says; "" means it, too
NAMES = {"rapt": "rapt", "pytorch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def promise(results):
    """A colour for each hash of a column: the first is that of the first row."""
    bits = {name: {way: value or NOT_RUN for way, value in results.bits[name].items()}
            for name in NAMES if results.bits.get(name)}
    figure, axes = plt.subplots(figsize=(9, 3.9), layout="constrained")
    for x, (name, hashes) in enumerate(bits.items()):
        seen = list(dict.fromkeys(value for value in (hashes.get(way) for way in WAYS) if value not in (None, NOT_RUN)))
        for y, way in enumerate(WAYS):
            value = hashes.get(way)
            first = value in seen[:1]
            if value in seen:
                axes.add_patch(plt.Rectangle((x - 0.46, y - 0.42), 0.92, 0.84, linewidth=0,
                                             facecolor="C0" if first else "C1"))
            axes.text(x, y, value[:8] if value else "–", ha="center", va="center", family="monospace",
                      color="white" if first else "black")
        axes.text(x, len(WAYS) - 0.1, f"{len(seen)} result{'s' if len(seen) != 1 else ''}", ha="center", va="center",
                  fontweight="bold")
    axes.set_xticks(range(len(bits)), [NAMES[name] for name in bits])
    axes.set_yticks(range(len(WAYS)), WAYS.values())
    axes.set(xlim=(-0.5, len(bits) - 0.5), ylim=(len(WAYS) + 0.3, -0.5))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.suptitle("One sequence, computed in several ways: the hash of its last 64 tokens\n"
                    "blue: the bits of the first row; yellow: others; –: the library cannot be asked for it"
                    + ("\nnot run: the build for ARM or its emulator was missing" if bits.get("rapt", {}).get("arm") == NOT_RUN else ""))
    return figure


PICTURES = {"promise": promise}
