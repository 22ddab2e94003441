# SPDX-License-Identifier: MIT
"""The figures in the prose of README.md and docs/performance.md, from a file of benchmarks/results."""
import re

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
        "cpu": results.machine["cpu"], "cores": str(results.machine["cores"]), "date": results.machine["date"],
    }
