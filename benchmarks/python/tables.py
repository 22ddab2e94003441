# SPDX-License-Identifier: MIT
"""The tables of docs/performance.md, docs/performance/ and README.md, from a file of benchmarks/results."""
import re

MISSING = "–"


def percent(row, field):
    """88.1 ± 0.4 %: the median, and half the distance between the quartiles."""
    if not row or field not in row:
        return MISSING
    return f"{100 * row[field]:.1f} ± {50 * row[field] * row['spread']:.1f} %"


def plain_percent(row, field):
    return f"{100 * row[field]:.0f} %" if row and field in row else MISSING


def times(row, field, digits=2):
    return f"{row[field]:.{digits}f}" if row and field in row else MISSING


def table(head, rows):
    """Rows of which nothing was measured are left out, as after a quick recording."""
    lines = [head, ["---"] * len(head), *(row for row in rows if set(row[1:]) != {MISSING})]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(results):
    about, noise = results.machine, results.noise
    peaks = ", ".join(f"{rate:.0f} GFLOPS with {isa}" for isa, rate in about["fma_gflops"].items())
    peers_named = re.sub(r"\+(cu\w+|cpu)", "", about["peers"])
    blas = re.sub(r" (NO_|DYNAMIC).*?,", ",", about["openblas"])
    return table(["", ""], [
        ["processor", f"{about['cpu']}; {about['processor']}; {about['cores']} cores"],
        ["caches", ", ".join(about["caches"])], ["data", about["memory"]],
        ["system, compiler", f"{about['system']}; {about['compiler']}"],
        ["FMA peak of a core", peaks], ["stream-read peak of a core", f"{about['stream_gbps']:.1f} GB/s"],
        ["peers", f"{peers_named}; {blas}"],
        ["measured", f"{about['date']}, commit {about['commit']}"
                     + (", quickly: less steady than a full recording" if about["effort"] == "quick" else "")],
        ["noise", f"spread of a row {plain_percent(noise, 'median_spread')} (the median of all rows); beside rows the FMA peak "
                  f"was up to {plain_percent(noise, 'fma_peak_lost')} below its best, the stream-read peak "
                  f"{plain_percent(noise, 'stream_peak_lost')}; in {noise['rows_disturbed']} rows other programs took more "
                  "than a tenth of the processor"]])


def prefill(results):
    def line(title, shape, isa="@1"):
        return [title] + [percent(results.row(f"prefill/f32/{shape}/{kind}/{isa}/t1"), "of_peak")
                          for kind in ("full", "causal")]

    lines = [line(f"D = {dim}, S = 2048", f"d{dim}/s2048") for dim in (64, 72, 80, 96, 100, 128, 256)]
    lines += [line(f"D = 128, S = {length}", f"d128/s{length}") for length in (512, 8192, 32768)]
    lines += [line(f"D = {dim}, S = 128", f"d{dim}/s128") for dim in (64, 80, 96, 128, 256)]
    if len(results.names) > 1:
        lines += [line(f"{results.names[1]}, D = {dim}, S = {length}", f"d{dim}/s{length}", "@2")
                  for dim, length in ((128, 2048), (64, 2048), (128, 128))]
    return table(["", "full", "causal"], lines)


def layouts(results):
    shapes = (("s4096", "g1"), ("s4096", "g4"), ("s2048", "g1"))
    names = {"bhsd": "[batch, heads, tokens, dim]", "bshd": "[batch, tokens, heads, dim]"}
    names |= {f"kv{size}k": f"K and V {size} KiB from token to token" for size in (4, 8, 16)}
    return table(["", "S = 4096", "S = 4096, group 4", "S = 2048"], [
        [title] + [percent(results.row(f"prefill/f32/d128/{length}/full/layout:{name}/{group}/@1/t1"), "of_peak")
                   for length, group in shapes] for name, title in names.items()])


FEATURES = {"causal": "causal", "sinks": "sinks", "alibi": "ALiBi", "softcap": "softcap",
            "boolmask_ones": "bool mask, all true", "boolmask_random": "bool mask, random", "bias": "bias",
            "boolmask_causal": "dense bool mask that is causal", "window512": "window of 512"}


def features(results):
    return table(["S = 2048", "D = 128", "D = 64"], [
        [title] + [times(results.row(f"prefill/f32/d{dim}/s2048/{name}/@1/t1"), "cost") for dim in (128, 64)]
        for name, title in FEATURES.items()])


def decode(results):
    def line(title, shape):
        return [title] + [percent(results.row(f"decode/f32/{shape}/{isa}/t1"), "of_stream") for isa in ("@1", "@2")]

    lines = [line(f"D = 128, group {group}", f"d128/kv32768/g{group}") for group in (1, 4, 8, 16)]
    lines += [line(f"D = {dim}, group {group}", f"d{dim}/kv32768/g{group}") for dim in (64, 256) for group in (1, 4)]
    lines.append(line("D = 128, one KV head, 131072 keys", "d128/kv131072/h1"))
    return table(["keys from memory", *(results.names + [MISSING])[:2]], lines)


def extend(results):
    return table(["queries", "group 1", "group 4"], [
        [str(count)] + [percent(results.row(f"extend/f32/d128/q{count}/kv32768/g{group}/@1/t1"), "of_limit")
                        for group in (1, 4)] for count in (2, 4, 8, 16)])


def few_rows(results):
    """From the sweep: one query of one head of a group is a row."""
    counts = (1, 4, 8, 9, 12, 16, 20, 24, 32, 40, 48, 64)
    lines = []
    for isa in results.names:
        found = {row["query_length"]: row for row in results.sweep
                 if row["sweep"] == "rows" and row["isa"] == isa and row["group"] == 1}
        lines.append([isa] + [f"{100 * max(found[count]['of_peak'], found[count]['of_stream']):.0f}"
                              if count in found else MISSING for count in counts])
    return table(["% of the lower limit, rows:", *map(str, counts)], lines)


MIXED = {"prefill1000x1/decode4096x31/g4": "a prefill of 1,000 and 31 decodes of 4,096 keys",
         "prefill1000x1/decode32768x1/g4": "a prefill of 1,000 and a decode of 32,768 keys",
         "prefill1000x1/decode32768x1/g4/h1": "the same with one KV head",
         "decode16to8192x255/g4/h2": "255 decodes of 16 to 8,192 keys, against 255 of the mean"}


def mixed(results):
    return table(["D = 128, group 4", "one thread", "two threads"], [
        [title] + [times(results.row(f"mixed/f32/d128/{name}/@1/t{threads}"), "of_parts") for threads in (1, 2)]
        for name, title in MIXED.items()])


def products(results):
    def line(title, name, field):
        return [title] + [percent(results.row(f"matmul/f32/{name}/{isa}/t1"), field) for isa in ("@1", "@2")]

    return table(["", *(results.names + [MISSING])[:2]], [
        line("512 × 768 × 768, of the FMA peak", "m512k768n768", "of_peak"),
        line("the same, weights [inner][columns]", "m512k768n768/in_out", "of_peak"),
        line("one row times 4096 × 4096, of the stream-read peak", "m1k4096n4096", "of_stream"),
        line("the same, weights [inner][columns]", "m1k4096n4096/in_out", "of_stream")])


THREADS = {"prefill/f32/d128/s2048/full/@1": "prefill, 2 heads of 2048 tokens",
           "prefill/f32/d128/s128/causal/@1": "causal prefill, 32 heads of 128 tokens",
           "ragged/f32/d128/causal/@1": "ragged lengths", "decode/f32/d128/kv32768/g1/@1": "decode, 8 KV heads",
           "decode/f32/d128/kv131072/h1/@1": "decode, one KV head", "matmul/f32/m512k768n768/@1": "512 × 768 × 768",
           "layer/gpt2-small/t1024/causal": "a layer of GPT-2 small, 1024 tokens"}


def threads(results):
    counts = sorted({int(name.rsplit("/t", 1)[1]) for name in results.bench if "/t" in name} - {1})
    lines = [[title] + [times(results.row(f"{name}/t{count}"), "speedup") for count in counts]
             for name, title in THREADS.items()]
    return table(["times as fast as one thread", *(f"{count} threads" for count in counts)], lines)


PEERS = {"pytorch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def peers(results):
    cases = {}
    for row in results.peers:
        who = row["name"].split("/")[0].removeprefix("peer:") if row["name"].startswith("peer:") else "rapt"
        shape = row["name"].removeprefix(f"peer:{who}/").replace(f"/isa:{results.names[0]}", "")
        cases.setdefault(shape, {})[who] = row
    lines = []
    for shape, rows in cases.items():
        mine = rows["rapt"]
        limit = "of_stream" if shape.startswith("decode") else "of_peak"
        line = [case_title(mine, shape), percent(mine, limit)]
        for name in PEERS:
            text = times(rows.get(name), "rapt_speedup")
            folded = rows.get(name + "-folded")
            line.append(text + (f", folded {times(folded, 'rapt_speedup')}" if folded else ""))
        lines.append(line)
    return table(["", "rapt, of the limit", *PEERS.values()], lines)


def case_title(row, shape):
    if shape.startswith("prefill"):
        return f"D = {row['head_dim']}, S = {row['query_length']}, {'causal' if row['causal'] else 'full'}"
    if shape.startswith("decode"):
        return f"decode, {row['kv_length']} keys, group {row['group']}"
    return f"{row['query_length']} queries on {row['kv_length']} keys, group {row['group']}"


# As docs/types.md orders them: bits of an element.
TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "q8_0": "q8_0", "i8": "int8, a scale for each row",
         "f8_e4m3": "float8 e4m3", "f8_e5m2": "float8 e5m2", "q5_1": "q5_1", "q5_0": "q5_0", "q4_1": "q4_1",
         "q4_0": "q4_0", "iq4_nl": "iq4_nl"}
GROUPS = (1, 4, 8)


def ratio(row, other):
    """How many times as fast as the other."""
    return f"{other['ms'] / row['ms']:.2f}" if row and other else MISSING


def types(results):
    def decode_row(dtype, group):
        return results.type_row(f"decode/{dtype}/d128/kv32768/g{group}/t1")

    def line(dtype, title):
        rows = [decode_row(dtype, group) for group in GROUPS]
        prefills = [results.type_row(f"prefill/{name}/d128/s2048/full/t1") for name in (dtype, "f32")]
        return [title, *(plain_percent(row, "of_stream") for row in rows),
                *(ratio(row, decode_row("f32", group)) for row, group in zip(rows, GROUPS)), ratio(*prefills)]

    return table(["keys and values", *(f"of stream, group {group}" for group in GROUPS),
                  *(f"speed of float32, group {group}" for group in GROUPS), "prefill, of float32"],
                 [line(*item) for item in TYPES.items()])


def pages(results):
    lines = []
    for dtype, title in TYPES.items():
        for group in GROUPS:
            end = f"{dtype}/d128/kv32768/g{group}/t1"
            rows = [results.type_row(f"{kind}/{end}") for kind in ("decode", "paged128", "paged32", "paged16")]
            if any(rows[1:]):
                lines.append([f"{title}, group {group}", *(plain_percent(row, "of_stream") for row in rows)])
    return table(["of stream", "no pages", "pages of 128", "of 32", "of 16"], lines)


PEERS_OF_TYPES = {"ggml": "ggml", "vllm": "vLLM", **PEERS, "sglang": "SGLang"}


def type_case(row, name):
    kind, dtype, order = name.split("/")[:3]
    parts = [TYPES[dtype]]
    if order.startswith("order"):
        parts.append(f"order {order[5:]}")
    if kind == "prefill":
        return ", ".join(parts + ["prefill", case_title(row, name)])
    if kind.startswith("paged"):
        parts.append(f"pages of {kind[5:]}")
    parts.append(f"group {row['group']}" if kind != "mla" else f"latent attention, {row['heads']} heads")
    return ", ".join(parts)


def type_peers_of(results, threads):
    lines, isa = [], f"/isa:{results.names[0]}"
    for name, mine in results.types.items():
        shape = name.replace(isa, "")
        if name.startswith("peer:") or not name.endswith(f"/t{threads}"):
            continue
        line = [type_case(mine, shape), percent(mine, "of_peak" if shape.startswith("prefill") else "of_stream")]
        for peer in PEERS_OF_TYPES:
            best = [results.types[full] for full in (f"peer:{peer}/{shape}", f"peer:{peer}-folded/{shape}")
                    if full in results.types]
            line.append(times(min(best, key=lambda row: row["ms"]), "rapt_speedup") if best else MISSING)
        if set(line[2:]) != {MISSING}:
            lines.append(line)
    return table([f"rapt is times as fast as, {threads} thread{'s' if threads > 1 else ''}", "rapt, of the limit",
                  *PEERS_OF_TYPES.values()], lines)


def type_peers(results):
    return type_peers_of(results, 1)


def type_peers_threads(results):
    return type_peers_of(results, 2)


def openblas(results):
    lines = []
    for dim, length in ((128, 128), (128, 2048), (128, 8192), (64, 2048), (256, 2048)):
        rows = [results.row(f"peer:openblas/prefill/f32/d{dim}/s{length}/{kind}/t1") for kind in ("full", "causal")]
        if any(rows):
            lines.append([f"D = {dim}, S = {length}"] + [times(row, "rapt_speedup") for row in rows]
                         + [times(row, "rapt_speedup_whole") for row in rows])
    return table(["times as fast as OpenBLAS", "full", "causal", "full, whole matrices", "causal, whole matrices"], lines)


def readme(results):
    """The few lines of README."""
    def both(name, field):
        return " and ".join(plain_percent(results.row(name.replace("KIND", kind)), field) for kind in ("full", "causal"))

    def groups(isa):
        return ", ".join(f"{group}: {plain_percent(results.row(f'decode/f32/d128/kv32768/g{group}/{isa}/t1'), 'of_stream')}"
                         for group in (1, 4, 8))

    best, *others = results.names
    lines = [[f"prefill, D = 128, S = 2048, {best}, one thread", "of the FMA peak", "full and causal: "
              + both("prefill/f32/d128/s2048/KIND/@1/t1", "of_peak")]]
    lines += [["the same, " + others[0], "of the FMA peak", both("prefill/f32/d128/s2048/KIND/@2/t1", "of_peak")]
              ] if others else []
    lines += [["the same, two threads", "times as fast as one",
               times(results.row("prefill/f32/d128/s2048/full/@1/t2"), "speedup")],
              [f"decode, D = 128, 32768 keys, {best}, one thread", "of the stream-read peak", "group " + groups("@1")]]
    lines += [["the same, " + others[0], "of the stream-read peak", groups("@2")]] if others else []
    lines.append(["GPT-2 small's layer, 1024 tokens, causal", "of the FMA peak", "one and two threads: " + " and ".join(
        plain_percent(results.row(f"layer/gpt2-small/t1024/causal/t{count}"), "of_peak") for count in (1, 2))])
    return table(["float32", "", ""], lines)


TABLES = {function.__name__: function for function in (
    machine, prefill, layouts, features, decode, extend, few_rows, mixed, products, threads, peers, types, pages,
    type_peers, type_peers_threads, openblas, readme)}
