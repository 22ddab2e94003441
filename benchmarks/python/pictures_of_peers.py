# SPDX-License-Identifier: MIT
"""The picture of ./dev bench peers."""
import matplotlib.pyplot as plt

NAMES = {"rapt": "rapt", "pytorch": "PyTorch", "pytorch-folded": "PyTorch, heads folded by hand",
         "onnxruntime": "ONNX Runtime", "onnxruntime-folded": "ONNX Runtime, heads folded by hand",
         "openvino": "OpenVINO"}
COLORS = {"rapt": "C0", "pytorch": "C1", "onnxruntime": "C2", "openvino": "C3"}


def who(row):
    return row["name"].split("/")[0].removeprefix("peer:") if row["name"].startswith("peer:") else "rapt"


def kind_of(row):
    return row["name"].removeprefix("peer:" + who(row) + "/").split("/")[0]


def case_text(row):
    if kind_of(row) == "prefill":
        return f"S = {row['query_length']}\n{'causal' if row['causal'] else 'full'}"
    if kind_of(row) == "decode":
        return f"group {row['group']}"
    return f"{row['query_length']} queries,\n{row['kv_length'] // 1024}k keys, group {row['group']}"


def draw_bars(axes, rows, value, limit):
    """A group of bars for each case, and a line at the limit beside it."""
    cases = list(dict.fromkeys(case_text(row) for row in rows))
    width = 0.84 / len({who(row) for row in rows})
    for k, case in enumerate(cases):
        group = sorted((row for row in rows if case_text(row) == case), key=lambda row: list(NAMES).index(who(row)))
        for i, row in enumerate(group):
            folded = who(row).endswith("-folded")
            axes.bar(k + (i - (len(group) - 1) / 2) * width, row[value], width, label=NAMES[who(row)],
                     color=COLORS[who(row).removesuffix("-folded")], hatch="////" if folded else None,
                     edgecolor="white", linewidth=0.5)
        best = max((row[value] for row in group if who(row) != "rapt"), default=None)
        if best:
            axes.text(k - (len(group) - 1) / 2 * width, group[0][value] / 2, f"{group[0][value] / best:.2f} ×",
                      rotation=90, color="white", fontsize=9, ha="center", va="center")
        axes.plot([k - 0.46, k + 0.46], 2 * [group[0][limit]], color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(len(cases)), cases)
    axes.grid(axis="x", visible=False)


def peers(data):
    rows = [row for row in data["benchmarks"] if not row.get("error_occurred")]
    head_dims = sorted({row["head_dim"] for row in rows if kind_of(row) == "prefill"})
    figure = plt.figure(figsize=(10, 2.7 * (len(head_dims) + 1)), layout="constrained")
    grid = figure.add_gridspec(len(head_dims) + 1, 3)
    for i, head_dim in enumerate(head_dims):
        axes = figure.add_subplot(grid[i, :])
        draw_bars(axes, [row for row in rows if kind_of(row) == "prefill" and row["head_dim"] == head_dim], "gflops",
                  "peak_gflops")
        axes.set(title=f"prefill, D = {head_dim}", ylabel="GFLOPS")
    axes = figure.add_subplot(grid[-1, :2])
    draw_bars(axes, [row for row in rows if kind_of(row) == "decode"], "gbps", "stream_gbps")
    axes.set(title="decode, 32k keys from memory, D = 128", ylabel="GB/s")
    labels = {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    axes = figure.add_subplot(grid[-1, 2])
    draw_bars(axes, [row for row in rows if kind_of(row) == "extend"], "gflops", "peak_gflops")
    axes.set(title="a few queries", ylabel="GFLOPS")
    figure.legend([labels[name] for name in NAMES.values() if name in labels],
                  [name for name in NAMES.values() if name in labels], loc="outside lower center", ncols=3)
    threads = rows[0]["name"].rsplit("/t", 1)[1]
    figure.suptitle(f"float32, {threads} thread{'s' if threads != '1' else ''}: taller is faster\n"
                    "number: rapt ÷ the fastest other; dashed: FMA peak, for decode stream-read peak")
    return figure
