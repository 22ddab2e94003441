# SPDX-License-Identifier: MIT
"""Tables of orders 2 and 3 in docs/performance.md and its pages, from what `./dev bench --json` stored of their rows."""
from tables import MISSING, percent, table, times

SHAPES = ((128, 512), (128, 2048), (128, 8192), (64, 512), (64, 2048), (64, 8192), (80, 2048), (256, 2048))


def number(row, field):
    return f"{row[field]:.0f}" if row else MISSING


def units(results):
    def line(head_dim, tokens, kind):
        name = f"prefill/bf16/order2/d{head_dim}/s{tokens}/{kind}/isa:"
        amx, avx512, avx2 = (results.units.get(f"{name}{isa}/t1") for isa in ("amx", "avx512", "avx2"))
        return [f"{head_dim}, {tokens}, {kind}", number(amx, "gflops"), percent(amx, "of_peak"),
                percent(avx512, "of_peak"), percent(avx2, "of_peak")]

    return table(["head_dim, tokens", "matrix unit, GFLOPS", "of its peak", "AVX-512, of the FMA peak", "AVX2"],
                 [line(*shape, kind) for shape in SHAPES for kind in ("full", "causal")])


PARTS = ("d128/s512/causal", "d128/s2048/full", "d128/s2048/causal", "d128/s8192/full", "d64/s2048/full",
         "d64/s2048/causal")


def unit_parts(results):
    def line(shape):
        head_dim, tokens, kind = shape.split("/")
        amx, avx512 = (results.units.get(f"prefill/f32/order3/{shape}/isa:{isa}/t1") for isa in ("amx", "avx512"))
        return [f"{head_dim[1:]}, {tokens[1:]}, {kind}", number(amx, "gflops"), percent(amx, "of_peak"),
                percent(avx512, "of_peak")]

    return table(["head_dim, tokens", "matrix unit, GFLOPS", "of the FMA peak", "AVX-512, of the FMA peak"],
                 [line(shape) for shape in PARTS])


PEERS = {"vllm": "vLLM", "pytorch": "PyTorch", "openvino": "OpenVINO", "ggml": "ggml", "sglang": "SGLang"}


def unit_peers(results):
    """rapt in order 2 beside peers on the same bfloat16 tensors, from ./dev bench peers --units --store."""
    lines, isa = [], "/isa:amx"
    for name, mine in results.types.items():
        if name.startswith("peer:") or "/bf16/order2/" not in name or not name.endswith(isa + "/t1"):
            continue
        shape, prefill = name.replace(isa, ""), name.startswith("prefill")
        case = (f"D = {mine['head_dim']}, S = {mine['query_length']}, {'causal' if mine['causal'] else 'full'}" if prefill
                else f"decode, {mine['kv_length']} keys, group {mine['group']}")
        line = [case, f"{mine['gflops']:.0f} GFLOPS" if prefill else f"{mine['gbps']:.1f} GB/s",
                percent(mine, "of_peak" if prefill else "of_stream")]
        for peer in PEERS:
            found = [results.types[full] for full in (f"peer:{peer}/{shape}", f"peer:{peer}-folded/{shape}")
                     if full in results.types]
            line.append(times(min(found, key=lambda row: row["ms"]), "rapt_speedup") if found else MISSING)
        lines.append(line)
    return table(["bfloat16, one thread", "rapt, order 2", "of the limit"]
                 + [f"times as fast as {name}" for name in PEERS.values()], lines)


def unit_decode(results):
    def line(label, shape):
        rows = [results.units.get(f"{shape}/isa:{isa}/t1") for isa in ("amx", "avx512", "avx2")]
        return [label, *(percent(row, "of_stream") for row in rows)]

    usual = "bf16/order2/d128/kv32768"
    return table(["group", "with a matrix unit", "AVX-512", "AVX2"],
                 [line(f"{group}", f"decode/{usual}/g{group}") for group in (1, 4, 8, 16)]
                 + [line(f"{group}, pages of 16 tokens", f"paged16/{usual}/g{group}") for group in (1, 4, 8)]
                 + [line("4, pages of 128 tokens", f"paged128/{usual}/g4")]
                 + [line(f"latent attention, {heads} heads", f"decode/bf16/order2/mla576/kv65536/h1/g{heads}")
                    for heads in (8, 16)])
