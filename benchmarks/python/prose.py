# SPDX-License-Identifier: MIT
"""The figures in the prose of README.md and docs/ about performance, from a file of benchmarks/results."""
import re

import results as recordings
from tables import GROUPS, MISSING, PEERS, plain_percent, times


def peer_speedup(results, case, name):
    """Of the peer's best form, folded or not."""
    found = [row["rapt_speedup"] for row in results.peers
             if row["name"] in (f"peer:{name}/{case}/t1", f"peer:{name}-folded/{case}/t1")]
    return f"{min(found):.2f} ×" if found else MISSING


def six_bars(results):
    """How many times as fast rapt is as the fastest other, in the cases of the picture."""
    found = [fastest_peer(results, case) for case in (
        "prefill/f32/d128/s2048/full", "prefill/f32/d128/s2048/causal", "decode/f32/d128/kv32768/g4")]
    return sorted((text.split()[0] for text in found), key=float) if MISSING not in found else [MISSING]


def own_row(results, case):
    """rapt's, in the run with the peers."""
    return next((row for row in results.peers if row["name"] == f"{case}/isa:{results.names[0]}/t1"), None)


def fastest_peer(results, case):
    found = [peer_speedup(results, case, name) for name in PEERS]
    return min((text for text in found if text != MISSING), key=lambda text: float(text.split()[0]), default=MISSING)


def runs_apart(results):
    """How many points of a hundred a row differs between the runs of a recording: D = 128, prefill of 2048 tokens and
    decode on 32768 keys."""
    isa, apart = results.names[0], []
    cases = [f"prefill/f32/d128/s2048/{kind}" for kind in ("full", "causal")]
    for case in cases + [f"decode/f32/d128/kv32768/g{group}" for group in GROUPS]:
        field = "of_stream" if case.startswith("decode") else "of_peak"
        shares = [row[field] for row in (*results.bench.values(), *results.peers, *results.sweep)
                  if row["name"] == f"{case}/isa:{isa}/t1" and field in row]
        apart.append(max(shares, default=0) - min(shares, default=0))
    return f"{100 * max(apart):.0f}"


def strides(results):
    """What long strides of tokens cost, at most, in points: the table `layouts`."""
    lost = []
    for length, group in (("s4096", "g1"), ("s4096", "g4"), ("s2048", "g1")):
        rows = [results.row(f"prefill/f32/d128/{length}/full/layout:{layout}/{group}/@1/t1")
                for layout in ("bhsd", "bshd", "kv4k", "kv8k", "kv16k")]
        lost += [rows[0]["of_peak"] - row["of_peak"] for row in rows[1:] if rows[0] and row]
    return f"{100 * max(lost):.0f}" if lost else MISSING


def dot_products(results, shapes):
    """Times as long with AVX512_BF16 as with AVX-512, in order 2: from the least to the most."""
    found = [[results.units.get(f"{shape}/isa:{isa}/t1") for isa in ("avx512_bf16", "avx512")] for shape in shapes]
    ratios = [dot["ms"] / fma["ms"] for dot, fma in found if dot and fma]
    return f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else MISSING


def decode_rates(machine):
    rows = [machine.row(f"decode/f32/d128/kv32768/g{group}/@1/t1") for group in (1, 4, 8)]
    return "{:.0f}, {:.0f} and {:.0f} GB/s".format(*(row["gbps"] for row in rows)) if all(rows) else MISSING


def listed(texts):
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:]))) or MISSING


def of_all_machines(results):
    every = recordings.machines(results)
    window = "prefill/f32/d128/s32768/window1024/@1/t1"
    rates = {recordings.family(machine.machine).replace(" ", "-"): decode_rates(machine) for machine in every}
    same = [name for name, machine in zip(recordings.heads(every), every)
            if machine.bits["rapt"].get("arm") == results.bits["rapt"]["prefill"]]
    return {"arm": listed(same), "window": plain_percent(results.row(window), "of_peak"),
            "window-others": listed([plain_percent(machine.row(window), "of_peak") for machine in every[1:]]),
            **{f"decode-{name}": text for name, text in rates.items()}}


def figures(results):
    """Name -> text, for <!--name-->text<!----> in prose."""
    return {
        "prefill-full": plain_percent(results.row("prefill/f32/d128/s2048/full/@1/t1"), "of_peak"),
        "prefill-causal": plain_percent(results.row("prefill/f32/d128/s2048/causal/@1/t1"), "of_peak"),
        "prefill-full-2": plain_percent(results.row("prefill/f32/d128/s2048/full/@2/t1"), "of_peak"),
        "prefill-causal-2": plain_percent(results.row("prefill/f32/d128/s2048/causal/@2/t1"), "of_peak"),
        "prefill-threads": times(results.row("prefill/f32/d128/s2048/full/@1/t2"), "speedup"),
        **{f"decode-{group}": plain_percent(results.row(f"decode/f32/d128/kv32768/g{group}/@1/t1"), "of_stream")
           for group in (1, 4, 8, 16)},
        **{f"decode-{group}-2": plain_percent(results.row(f"decode/f32/d128/kv32768/g{group}/@2/t1"), "of_stream")
           for group in (1, 4, 8)},
        "layer": plain_percent(results.row("layer/gpt2-small/t1024/causal/t1"), "of_peak"),
        "layer-threads": plain_percent(results.row("layer/gpt2-small/t1024/causal/t2"), "of_peak"),
        "many": plain_percent(results.row("many/f32/d128/n10000/kv64/@1/t1"), "of_stream"),
        "tiny": times(results.row("tiny/f32/d64/s16/@1/t1"), "microseconds", 1) + " µs",
        "peers-full": fastest_peer(results, "prefill/f32/d128/s2048/full"),
        "peers-causal": fastest_peer(results, "prefill/f32/d128/s2048/causal"),
        "peers-decode": fastest_peer(results, "decode/f32/d128/kv32768/g4"),
        **{f"picture-{kind}": plain_percent(own_row(results, case), field) for kind, case, field in (
            ("prefill", "prefill/f32/d128/s2048/full", "of_peak"), ("decode", "decode/f32/d128/kv32768/g4", "of_stream"))},
        "runs-apart": runs_apart(results),
        "peers-low": six_bars(results)[0], "peers-high": six_bars(results)[-1],
        "machine": f"{results.machine['cpu']}, {results.machine['cores']} cores",
        "types-peers": re.sub(r"\+(cu\w+|cpu)", "", results.types_machine.get("peers", MISSING)),
        "types-date": results.types_machine.get("date", MISSING),
        "types-commit": results.types_machine.get("commit", MISSING),
        **of_all_machines(results), "strides": strides(results),
        "dot-prefill": dot_products(results, [f"prefill/bf16/order2/d{dim}/s2048/{kind}" for dim in (64, 80, 128, 256)
                                              for kind in ("full", "causal")]),
        "dot-decode": dot_products(results, [f"decode/bf16/order2/d128/kv32768/g{group}" for group in (1, 4, 8, 16)]),
        "cpu": results.machine["cpu"], "cores": str(results.machine["cores"]), "date": results.machine["date"],
    }
