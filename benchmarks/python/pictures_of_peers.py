# SPDX-License-Identifier: MIT
"""rapt beside the peers of a recording: one picture of six bars, one of all cases, one of bfloat16 on matrix units."""
import matplotlib.pyplot as plt
from matplotlib.ticker import PercentFormatter

NAMES = {"rapt": "rapt", "pytorch": "PyTorch", "pytorch-folded": "PyTorch, heads folded by hand",
         "onnxruntime": "ONNX Runtime", "onnxruntime-folded": "ONNX Runtime, heads folded by hand",
         "openvino": "OpenVINO", "vllm": "vLLM", "sglang": "SGLang", "ggml": "ggml",
         "ggml-folded": "ggml, heads folded by hand"}
COLORS = {"rapt": "C0", "pytorch": "C1", "onnxruntime": "C2", "openvino": "C3", "vllm": "C4", "sglang": "C5",
          "ggml": "C6"}
ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # labels that lines would run through
SIX = [("prefill/f32/d128/s2048/full", "prefill of 2048 tokens", "of_peak"),
       ("prefill/f32/d128/s2048/causal", "the same, causal", "of_peak"),
       ("decode/f32/d128/kv32768/g4", "decode, 32k keys,\n4 query heads per KV head", "of_stream")]


NO_BAR = "A library without a bar was not measured, or has no such call"


def who(row):
    return row["name"].split("/")[0].removeprefix("peer:") if row["name"].startswith("peer:") else "rapt"


def kind_of(row):
    return row["name"].removeprefix("peer:" + who(row) + "/").split("/")[0]


def six_bars(results):
    """rapt and the fastest other, as shares of what the machine allows."""
    figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
    for i, (case, title, limit) in enumerate(SIX):
        rows = [row for row in results.peers if f"{case}/" in row["name"]]
        mine = [row for row in rows if who(row) == "rapt"]
        others = sorted((row for row in rows if who(row) != "rapt"), key=lambda row: row["ms"])
        if not mine or not others:
            continue
        for place, row in ((i - 0.2, mine[0]), (i + 0.2, others[0])):
            name = NAMES[who(row)].replace(", heads folded by hand", ",\nheads folded\nby hand")
            axes.bar(place, row[limit], 0.36, color=COLORS[who(row).removesuffix("-folded")])
            axes.text(place, row[limit] + 0.015, f"{row[limit]:.0%}\n{name}", ha="center", va="bottom", fontsize=10,
                      bbox=ON_WHITE)
        axes.text(i - 0.2, mine[0][limit] / 2, f"{others[0]['ms'] / mine[0]['ms']:.2f} ×\nas fast", ha="center",
                  va="center", color="white", fontsize=10)
    axes.axhline(1, color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(SIX)), [title for _, title, _ in SIX])
    axes.set(ylim=(0, 1.25), ylabel="share of what the machine allows", xlim=(-0.5, len(SIX) - 0.5))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.grid(axis="x", visible=False)
    figure.suptitle(f"rapt and the fastest of PyTorch, ONNX Runtime and OpenVINO: float32, D = 128, one thread\n"
                    f"{results.title}; medians")
    return figure


def case_text(row):
    if kind_of(row) == "prefill":
        return f"S = {row['query_length']}\n{'causal' if row['causal'] else 'full'}"
    if kind_of(row) == "decode":
        return f"group {row['group']}"
    return f"{row['query_length']} queries,\n{row['kv_length'] // 1024}k keys, group {row['group']}"


def draw_bars(axes, rows, value, limit):
    """A group of bars for each case, and a line at the limit beside it; how many times as fast rapt is, above its bar."""
    cases = list(dict.fromkeys(case_text(row) for row in rows))
    width = 0.84 / max(1, len({who(row) for row in rows}))
    for k, case in enumerate(cases):
        group = sorted((row for row in rows if case_text(row) == case), key=lambda row: list(NAMES).index(who(row)))
        for i, row in enumerate(group):
            folded = who(row).endswith("-folded")
            axes.bar(k + (i - (len(group) - 1) / 2) * width, row[value], width, label=NAMES[who(row)],
                     color=COLORS[who(row).removesuffix("-folded")], hatch="////" if folded else None,
                     edgecolor="white", linewidth=0.5)
        best = max((row[value] for row in group if who(row) != "rapt"), default=None)
        if best:
            axes.text(k - (len(group) - 1) / 2 * width, group[0][value] * 1.01, f"{group[0][value] / best:.2f} ×",
                      fontsize=9, ha="center", va="bottom", bbox=ON_WHITE)
        axes.plot([k - 0.46, k + 0.46], 2 * [group[0][limit]], color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(cases)), cases)
    axes.grid(axis="x", visible=False)
    axes.set_ylim(0, 1.12 * max((row[limit] for row in rows), default=1))


def draw_cases(rows, title):
    """A line for the prefills of each head dim, and one for what else there is."""
    head_dims = sorted({row["head_dim"] for row in rows if kind_of(row) == "prefill"})
    figure = plt.figure(figsize=(10, 3 * (len(head_dims) + 1)), layout="constrained")
    grid = figure.add_gridspec(len(head_dims) + 1, 3)
    for i, head_dim in enumerate(head_dims):
        axes = figure.add_subplot(grid[i, :])
        draw_bars(axes, [row for row in rows if kind_of(row) == "prefill" and row["head_dim"] == head_dim], "gflops",
                  "peak_gflops")
        axes.set(title=f"prefill, D = {head_dim}", ylabel="GFLOPS")
    few = [row for row in rows if kind_of(row) == "extend"]
    axes = figure.add_subplot(grid[-1, :2 if few else 3])
    draw_bars(axes, [row for row in rows if kind_of(row) == "decode"], "gbps", "stream_gbps")
    axes.set(title="decode, 32k keys from memory, D = 128", ylabel="GB/s")
    labels = {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    if few:
        axes = figure.add_subplot(grid[-1, 2])
        draw_bars(axes, few, "gflops", "peak_gflops")
        axes.set(title="a few queries, D = 128", ylabel="GFLOPS")
    figure.legend([labels[name] for name in NAMES.values() if name in labels],
                  [name for name in NAMES.values() if name in labels], loc="outside lower center", ncols=3)
    figure.suptitle(title)
    return figure


def all_cases(results):
    return draw_cases(results.peers, "float32, one thread: taller is faster. Number: rapt ÷ the fastest other; dashed: FMA "
                                     f"peak, for decode stream-read peak\n{results.title}; medians. {NO_BAR}")


def on_units(results):
    rows = [row for row in results.types.values() if "/bf16/order2/" in row["name"] and row["name"].endswith("/t1")]
    return draw_cases(rows, "bfloat16 on the matrix unit (rapt: order 2), one thread. Number: rapt ÷ the fastest other; dashed: "
                            f"peak of the unit, for decode stream-read peak\n{results.title}; medians. {NO_BAR}")


PICTURES = {"peers": six_bars, "peers-all": all_cases, "peers-units": on_units}
