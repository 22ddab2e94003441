# SPDX-License-Identifier: MIT
"""Pictures of ./dev bench sweep."""
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, PercentFormatter

MARKERS = "osD^vPX"


def rows_of(sweep, name, **wanted):
    return [row for row in sweep["benchmarks"]
            if row["sweep"] == name and all(row[key] == value for key, value in wanted.items())]


def values_of(rows, key):
    return sorted({row[key] for row in rows})


def isas_of(sweep):
    """Fastest first."""
    rates = sweep["context"]["fma_gflops"]
    return sorted(rates, key=rates.get, reverse=True)


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


def share_of_peak(sweep):
    """Against sequence length."""
    isas = isas_of(sweep)
    figure, grid = panels(len(isas), 2)
    for isa, line in zip(isas, grid):
        for causal, axes in enumerate(line):
            rows = rows_of(sweep, "lengths", isa=isa, causal=causal)
            for i, head_dim in enumerate(values_of(rows, "head_dim")):
                draw_line(axes, [row for row in rows if row["head_dim"] == head_dim], "query_length",
                          lambda row: row["of_peak"], f"D = {head_dim}", i)
            log2_axis(axes, [2 ** i for i in range(6, 16)])
            axes.set_title(f"{isa}, {'causal' if causal else 'full'}")
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter(PercentFormatter(1))
        line[0].set_ylabel("share of the FMA peak")
    for axes in grid[-1]:
        axes.set_xlabel("sequence length S (queries = keys)")
    grid[0][1].legend(loc="lower right")
    figure.suptitle("Prefill, float32, one thread: how much of the machine's arithmetic is used")
    return figure


def head_dims(sweep):
    isas = isas_of(sweep)
    figure, grid = panels(1, len(isas), height=3.4)
    for isa, axes in zip(isas, grid[0]):
        for causal in (0, 1):
            draw_line(axes, rows_of(sweep, "head_dims", isa=isa, causal=causal), "head_dim",
                      lambda row: row["of_peak"], "causal" if causal else "full", causal)
        axes.set_title(isa)
        axes.set_xticks(range(0, 257, 32))
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel("head dim D")
    grid[0][0].set_ylabel("share of the FMA peak")
    grid[0][0].legend(loc="lower right")
    figure.suptitle("Prefill of 2048 tokens, float32, one thread, for each head dim")
    return figure


def decode(sweep):
    """Read rate against cache length."""
    isas = isas_of(sweep)
    figure, grid = panels(1, len(isas), height=3.8)
    for isa, axes in zip(isas, grid[0]):
        rows = rows_of(sweep, "kv_lengths", isa=isa)
        for i, group in enumerate(values_of(rows, "group")):
            draw_line(axes, [row for row in rows if row["group"] == group], "kv_length",
                      lambda row: row["of_stream"], f"{group}", i)
        axes.axhline(1, color="black", linestyle="--", linewidth=1)
        log2_axis(axes, [2 ** i for i in range(6, 18)])
        axes.set_ylim(0, 1.2)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_title(isa)
        axes.set_xlabel("keys in the cache")
    grid[0][0].set_ylabel("share of the stream-read rate")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5,
                  title="query heads that share a KV head")
    figure.suptitle(f"Decode from memory, float32, D = 128, 8 KV heads, one thread "
                    f"(100 %: {sweep['context']['stream_gbps']:.0f} GB/s)")
    return figure


def few_rows(sweep):
    """Share of the limit against the rows of a KV head: one line if no number of rows is a step."""
    isas = isas_of(sweep)
    lengths = values_of(rows_of(sweep, "rows"), "kv_length")
    figure, grid = panels(len(isas), len(lengths))
    for isa, line in zip(isas, grid):
        for length, axes in zip(lengths, line):
            rows = rows_of(sweep, "rows", isa=isa, kv_length=length)
            for i, group in enumerate(values_of(rows, "group")):
                points = [dict(row, rows=row["query_length"] * group) for row in rows if row["group"] == group]
                draw_line(axes, points, "rows", lambda row: 1 / times_the_limit(row), f"group {group}", i)
            axes.set_title(f"{isa}, {count_text(length)} keys")
            axes.set_xticks(range(0, 65, 8))
            axes.set_ylim(0, 1)
            axes.yaxis.set_major_formatter(PercentFormatter(1))
        line[0].set_ylabel("share of the lower limit")
    for axes in grid[-1]:
        axes.set_xlabel("rows: queries × query heads of a KV head")
    grid[0][-1].legend(loc="lower right", ncols=2)
    figure.suptitle("A few rows on many keys, float32, D = 128, 8 KV heads, one thread")
    return figure


def speed_up(sweep):
    rows = rows_of(sweep, "threads")
    counts = [count for count in values_of(rows, "rapt_threads") if count > 1]
    kinds = list(dict.fromkeys(describe_work(row) for row in rows))
    figure, axes = plt.subplots(figsize=(7, 0.7 + 0.55 * len(kinds) * max(1, len(counts))), layout="constrained")
    height = 0.8 / max(1, len(counts))
    for i, count in enumerate(counts):
        values = {describe_work(row): row["speedup"] for row in rows if row["rapt_threads"] == count}
        bars = axes.barh([k + i * height for k in range(len(kinds))], [values.get(kind, 0) for kind in kinds],
                         height, color=f"C{i}", label=f"{count} threads")
        axes.bar_label(bars, fmt="%.2f", label_type="center", color="white")
        axes.axvline(count, color=f"C{i}", linestyle="--", linewidth=1)
    axes.set_yticks([k + (len(counts) - 1) * height / 2 for k in range(len(kinds))], kinds)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("times as fast as one thread; dashed: as many times as there are threads")
    if len(counts) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4)
    axes.set_title(" and ".join(str(count) for count in counts) + " threads against one", loc="left")
    return figure


def describe_work(row):
    if row["query_length"] == 1:
        kv_heads = row["heads"] // row["group"]
        plural = "s" if kv_heads > 1 else ""
        return f"decode, {row['kv_length'] // 1024}k keys,\n{kv_heads} KV head{plural}, group {row['group']}"
    kind = "causal" if row["causal"] else "full"
    many = f"{row['batch']} sequences,\n" if row["batch"] > 1 else ""
    return f"{many}prefill {row['query_length']} {kind},\n{row['heads']} heads, D = {row['head_dim']}"


def roofline(sweep):
    """Operations per byte against operations per second."""
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    stream = sweep["context"]["stream_gbps"]
    isa, *_ = isas_of(sweep)
    reach = (0.25, 20000)
    for name, peak in sweep["context"]["fma_gflops"].items():
        axes.plot([reach[0], peak / stream, reach[1]], [reach[0] * stream, peak, peak], color="black",
                  linewidth=1.5 if name == isa else 0.8)
        axes.annotate(f"FMA peak, {name}: {peak:.0f} GFLOPS", (reach[1], peak), xytext=(-2, 4),
                      textcoords="offset points", ha="right", fontsize=9)
    axes.annotate(f"memory: {stream:.1f} GB/s", (3, 3 * stream), xytext=(-8, 0), textcoords="offset points",
                  ha="right", fontsize=9)
    for i, (label, rows) in enumerate({
            "decode, 32k keys, groups 1 to 16": rows_of(sweep, "kv_lengths", isa=isa, kv_length=32768),
            "1 to 32 queries, 8k keys, group 4": rows_of(sweep, "queries", isa=isa, group=4),
            "prefill, full, D = 128": rows_of(sweep, "lengths", isa=isa, head_dim=128, causal=0),
            "prefill, causal, D = 128": rows_of(sweep, "lengths", isa=isa, head_dim=128, causal=1)}.items()):
        axes.plot([row["gflops"] / row["gbps"] for row in rows], [row["gflops"] for row in rows], linestyle="",
                  marker=MARKERS[i], markersize=6, color=f"C{i}", label=label, alpha=0.85)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*reach)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("operations per byte of query, key, value and output")
    axes.set_ylabel("GFLOPS")
    axes.set_title(f"Roofline, float32, {isa}, one thread; the lines are what the machine allows", loc="left")
    axes.legend(loc="lower right")
    return figure


def times_the_limit(row):
    """Time against the least that arithmetic and memory allow."""
    from_memory = not row["name"].startswith("prefill")
    return 1 / max(row["of_peak"], row["of_stream"] if from_memory else 0)


def growth(sweep):
    """No cliffs: time per unit of work as each size grows."""
    isa, *_ = isas_of(sweep)
    figure, grid = panels(4, 2, height=2.8)
    batches = rows_of(sweep, "batches", isa=isa)
    plans = [  # work, what grows, rows, its field, the field of the lines, their label
        ("causal prefill", "tokens", rows_of(sweep, "lengths", isa=isa, causal=1), "query_length", "head_dim",
         "D = {}"),
        ("prefill, 2048 tokens", "head dim", rows_of(sweep, "head_dims", isa=isa), "head_dim", "causal", "{}"),
        ("decode, one query", "keys", rows_of(sweep, "kv_lengths", isa=isa), "kv_length", "group", "group {}"),
        ("few queries, 8k keys", "queries", rows_of(sweep, "queries", isa=isa), "query_length", "group", "group {}"),
        ("causal prefill, D = 128", "heads", rows_of(sweep, "heads", isa=isa), "heads", "query_length", "{} tokens"),
        ("window, 8k tokens", "keys in the window", rows_of(sweep, "windows", isa=isa), "window", "head_dim", "D = {}"),
        ("causal prefill, 4 heads, D = 64", "sequences in the batch",
         [row for row in batches if row["causal"]], "batch", "query_length", "{} tokens"),
        ("decode, one head, D = 128", "sequences in the batch",
         [row for row in batches if not row["causal"]], "batch", "kv_length", "{} keys"),
    ]
    for axes, (title, grows, rows, x, series, label) in zip(grid.flat, plans):
        for i, value in enumerate(values_of(rows, series)):
            text = label.format(("full", "causal")[value] if series == "causal" else value)
            draw_line(axes, [row for row in rows if row[series] == value], x, times_the_limit, text, i)
        low, high = min(values_of(rows, x)), max(values_of(rows, x))
        ticks = [2 ** i for i in range(0, 18) if low <= 2 ** i <= high]
        log2_axis(axes, ticks if len(ticks) <= 10 else ticks[::2])
        axes.set(title=title, xlabel=grows, ylim=(0, 5))
        axes.axhline(1, color="black", linestyle="--", linewidth=1)
        axes.legend(loc="upper right", ncols=3, fontsize=8)
    for line in grid:
        line[0].set_ylabel("time ÷ least possible")
    figure.suptitle(f"Cost as work grows, float32, {isa}, one thread; dashed: the limit of arithmetic or memory")
    return figure


PICTURES = {"roofline": roofline, "share-of-peak": share_of_peak, "head-dims": head_dims, "decode": decode,
            "threads": speed_up, "growth": growth, "rows": few_rows}
