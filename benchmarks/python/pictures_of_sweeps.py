# SPDX-License-Identifier: MIT
"""Pictures of the sweeps of a recording."""
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, PercentFormatter

MARKERS = "osD^vPX"


def rows_of(results, name, **wanted):
    return [row for row in results.sweep if row["sweep"] == name and all(row[key] == wanted[key] for key in wanted)]


def values_of(rows, key):
    return sorted({row[key] for row in rows})


def draw_line(axes, rows, x, y, label, index=0):
    """One line; rows of equal x do not occur."""
    points = sorted((row[x], y(row)) for row in rows)
    axes.plot([point[0] for point in points], [point[1] for point in points], marker=MARKERS[index % len(MARKERS)],
              color=f"C{index}", label=label)


def count_text(value, _=None):
    """4096 as 4k: lengths are powers of two."""
    return f"{value / 1024:g}k" if value >= 1024 and value % 1024 == 0 else f"{value:g}"


def log2_axis(axes, ticks):
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(FuncFormatter(count_text))


def panels(rows, columns, width=9.5, height=3.2):
    return plt.subplots(rows, columns, figsize=(width, height * rows), sharey=True, squeeze=False,
                        layout="constrained")


def share_axis(axes, top=1):
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def title(figure, text, results):
    figure.suptitle(f"{text}\n{results.title}; medians")


def share_of_peak(results):
    """Against sequence length."""
    figure, grid = panels(len(results.names), 2)
    for isa, line in zip(results.names, grid):
        for causal, axes in enumerate(line):
            rows = rows_of(results, "lengths", isa=isa, causal=causal)
            for i, head_dim in enumerate(values_of(rows, "head_dim")):
                draw_line(axes, [row for row in rows if row["head_dim"] == head_dim], "query_length",
                          lambda row: row["of_peak"], f"D = {head_dim}", i)
            log2_axis(axes, [2 ** i for i in range(6, 15)])
            axes.set_title(f"{isa}, {'causal' if causal else 'full'}")
            share_axis(axes)
        line[0].set_ylabel("share of the FMA peak")
    for axes in grid[-1]:
        axes.set_xlabel("sequence length S (queries = keys)")
    grid[0][1].legend(loc="lower right")
    title(figure, "Prefill, float32, one thread: how much of the machine's arithmetic is used", results)
    return figure


def head_dims(results):
    figure, grid = panels(1, len(results.names), height=3.6)
    for isa, axes in zip(results.names, grid[0]):
        for causal in (0, 1):
            draw_line(axes, rows_of(results, "head_dims", isa=isa, causal=causal), "head_dim",
                      lambda row: row["of_peak"], "causal" if causal else "full", causal)
        axes.set_title(isa)
        axes.set_xticks(range(0, 257, 32))
        share_axis(axes)
        axes.set_xlabel("head dim D")
    grid[0][0].set_ylabel("share of the FMA peak")
    grid[0][0].legend(loc="lower right")
    title(figure, "Prefill of 2048 tokens, float32, one thread, for each head dim", results)
    return figure


def decode(results):
    """Read rate against cache length."""
    figure, grid = panels(1, len(results.names), height=4)
    for isa, axes in zip(results.names, grid[0]):
        rows = rows_of(results, "kv_lengths", isa=isa)
        for i, group in enumerate(values_of(rows, "group")):
            draw_line(axes, [row for row in rows if row["group"] == group], "kv_length",
                      lambda row: row["of_stream"], f"{group}", i)
        axes.axhline(1, color="black", linestyle="--", linewidth=1)
        log2_axis(axes, [2 ** i for i in range(6, 18, 2)])
        share_axis(axes, 1.1)
        axes.set_title(isa)
        axes.set_xlabel("keys in the cache")
    grid[0][0].set_ylabel("share of the stream-read peak")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                  title="query heads that share a KV head")
    title(figure, f"Decode from memory, float32, D = 128, 8 KV heads, one thread "
                  f"(dashed: {results.machine['stream_gbps']:.0f} GB/s)", results)
    return figure


def few_rows(results):
    """Share of the limit against the rows of a KV head: one line if no number of rows is a step."""
    figure, grid = panels(1, len(results.names), height=3.8)
    for isa, axes in zip(results.names, grid[0]):
        rows = rows_of(results, "rows", isa=isa)
        for i, group in enumerate(values_of(rows, "group")):
            points = [dict(row, rows=row["query_length"] * group) for row in rows if row["group"] == group]
            draw_line(axes, points, "rows", lambda row: 1 / times_the_limit(row), f"group {group}", i)
        axes.set_title(isa)
        axes.set_xticks(range(0, 65, 8))
        share_axis(axes)
        axes.set_xlabel("rows: queries × query heads of a KV head")
    grid[0][0].set_ylabel("share of what the machine allows")
    grid[0][-1].legend(loc="lower right")
    title(figure, "A few rows on 8192 keys from memory, float32, D = 128, 8 KV heads, one thread", results)
    return figure


def units_of(results, kind):
    """Rows of order 2 on the matrix unit, as medians: operations per byte, GFLOPS."""
    rows = (row for name, row in results.units.items()
            if name.startswith("prefill/bf16/order2/d128/") and name.endswith(f"/{kind}/isa:amx/t1"))
    return [(row["gflops"] / row["gbps"], row["gflops"], row["peak_gflops"]) for row in rows]


def roofline(results):
    """Operations per byte against operations per second."""
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    stream, isa, reach = results.machine["stream_gbps"], results.names[0], (0.25, 20000)
    units = {kind: units_of(results, kind) for kind in ("full", "causal")}
    peaks = {f"FMA peak, {name}": peak for name, peak in results.machine["fma_gflops"].items()}
    if units["full"]:
        peaks["matrix unit, bfloat16"] = max(peak for _, _, peak in units["full"])
    for name, peak in peaks.items():
        axes.plot([reach[0], peak / stream, reach[1]], [reach[0] * stream, peak, peak], color="black",
                  linewidth=1.5 if name == f"FMA peak, {isa}" else 0.8)
        is_lower = peak < results.machine["fma_gflops"][isa]  # points of the best one lie above its line
        axes.annotate(f"{name}: {peak:.0f} GFLOPS", (reach[1], peak), xytext=(-2, -4 if is_lower else 4),
                      textcoords="offset points", ha="right", va="top" if is_lower else "bottom", fontsize=10)
    axes.annotate(f"memory: {stream:.1f} GB/s", (3, 3 * stream), xytext=(-8, 0), textcoords="offset points",
                  ha="right", fontsize=10)
    for i, (label, rows) in enumerate({
            "decode, 32k keys, groups 1 to 16": rows_of(results, "kv_lengths", isa=isa, kv_length=32768),
            "1 to 32 queries, 8k keys, group 4": rows_of(results, "queries", isa=isa, group=4),
            "prefill, full, D = 128": rows_of(results, "lengths", isa=isa, head_dim=128, causal=0),
            "prefill, causal, D = 128": rows_of(results, "lengths", isa=isa, head_dim=128, causal=1)}.items()):
        axes.plot([row["gflops"] / row["gbps"] for row in rows], [row["gflops"] for row in rows], linestyle="",
                  marker=MARKERS[i], markersize=6, color=f"C{i}", label=label, alpha=0.85, zorder=3 - 0.1 * i)
    for i, (kind, points) in enumerate(units.items()):
        axes.plot([point[0] for point in points], [point[1] for point in points], linestyle="", marker=MARKERS[i + 4],
                  markersize=6, color=f"C{i + 4}", alpha=0.85,
                  label=f"prefill, {kind}, D = 128, bfloat16 in order 2" if points else None)
    axes.set(xscale="log", yscale="log", xlim=reach, ylabel="GFLOPS",
             xlabel="operations per byte of query, key, value and output")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend(loc="lower right")
    title(figure, f"Roofline, float32 with {isa} unless stated, one thread; the lines are what the machine allows", results)
    return figure


def times_the_limit(row):
    """Time against the least that arithmetic and memory allow. Prefill reads from the caches, whose rate is no limit."""
    from_memory = not row["name"].startswith("prefill")
    return 1 / max(row["of_peak"], row["of_stream"] if from_memory else 0)


def growth(results):
    """No cliffs: time per unit of work as each size grows."""
    isa = results.names[0]
    figure, grid = panels(2, 2, height=3)
    plans = [  # work, what grows, rows, its field, the field of the lines, their label
        ("causal prefill", "tokens", rows_of(results, "lengths", isa=isa, causal=1), "query_length", "head_dim",
         "D = {}"),
        ("prefill, 2048 tokens", "head dim", rows_of(results, "head_dims", isa=isa), "head_dim", "causal", "{}"),
        ("few queries, 8k keys from memory, D = 128", "queries", rows_of(results, "queries", isa=isa), "query_length",
         "group", "group {}"),
        ("window, 8k tokens", "keys in the window", rows_of(results, "windows", isa=isa), "window", "head_dim", "D = {}"),
    ]
    for axes, (name, grows, rows, x, series, label) in zip(grid.flat, plans):
        for i, value in enumerate(values_of(rows, series)):
            text = label.format(("full", "causal")[value] if series == "causal" else value)
            draw_line(axes, [row for row in rows if row[series] == value], x, times_the_limit, text, i)
        if rows:
            low, high = min(values_of(rows, x)), max(values_of(rows, x))
            log2_axis(axes, [2 ** i for i in range(0, 18) if low <= 2 ** i <= high])
        axes.set(title=name, xlabel=grows, ylim=(1, 3))
        axes.legend(loc="upper right", ncols=3, fontsize=9)
    for line in grid:
        line[0].set_ylabel("time ÷ least possible")
    title(figure, f"Cost as work grows, float32, {isa}, one thread; 1 is the limit of arithmetic or memory", results)
    return figure


PICTURES = {"roofline": roofline, "share-of-peak": share_of_peak, "head-dims": head_dims, "decode": decode,
            "growth": growth, "rows": few_rows}
