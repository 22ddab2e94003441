# SPDX-License-Identifier: MIT
"""The table of docs/performance.md that has all machines of benchmarks/results side by side."""
import results as recordings
from prose import fastest_peer
from tables import MISSING, percent, table

UNITS = ("amx", "avx512_bf16")  # which order 2 runs on, best first


def unit_row(machine, case):
    """From its recording of units, or from that of all rows where there is none of units."""
    names = [f"{case}/isa:{isa}/t1" for isa in UNITS]
    rows = [machine.units.get(name) or machine.row(name) for name in names]
    return next((row for row in rows if row), None)


def rate(row):
    return f"{row['gflops']:.0f} GFLOPS, {100 * row['of_peak']:.0f} %" if row else MISSING


def all_machines(found):
    every = recordings.machines(found)

    def share(title, name, field):
        return [title, *(percent(machine.row(name), field) for machine in every)]

    lines = [["measured", *(f"{machine.machine['date']}, commit {machine.machine['commit']}" for machine in every)],
             ["FMA peak of a core, GFLOPS", *(
                 " / ".join(f"{gflops:.0f} {isa}" for isa, gflops in machine.machine["fma_gflops"].items())
                 for machine in every)],
             ["stream-read peak of a core, GB/s", *(f"{machine.machine['stream_gbps']:.1f}" for machine in every)],
             ["noise: the FMA peak, the stream-read peak lost", *(
                 f"{100 * machine.noise['fma_peak_lost']:.0f} %, {100 * machine.noise['stream_peak_lost']:.0f} %"
                 for machine in every)]]
    for dim in (64, 128, 256):
        for kind in ("full", "causal"):
            lines.append(share(f"prefill, D = {dim}, S = 2048, {kind}, of the FMA peak",
                               f"prefill/f32/d{dim}/s2048/{kind}/@1/t1", "of_peak"))
    lines.append(share("the same, AVX2, D = 128, full", "prefill/f32/d128/s2048/full/@2/t1", "of_peak"))
    for group in (1, 4, 8, 16):
        lines.append(share(f"decode, 32768 keys, D = 128, group {group}, of stream",
                           f"decode/f32/d128/kv32768/g{group}/@1/t1", "of_stream"))
    lines.append(share("the same, AVX2, group 1", "decode/f32/d128/kv32768/g1/@2/t1", "of_stream"))
    for title, case in (("prefill, D = 128, S = 2048, causal", "prefill/f32/d128/s2048/causal"),
                        ("decode, 32768 keys, group 4", "decode/f32/d128/kv32768/g4")):
        lines.append([f"{title}, times the fastest peer", *(fastest_peer(machine, case) for machine in every)])
    for dim, tokens, kind in ((128, 2048, "full"), (128, 2048, "causal"), (64, 2048, "full")):
        lines.append([f"bfloat16, order 2, D = {dim}, S = {tokens}, {kind}, on the unit, of its peak",
                      *(rate(unit_row(machine, f"prefill/bf16/order2/d{dim}/s{tokens}/{kind}")) for machine in every)])
    for group in (1, 4, 8, 16):
        rows = [unit_row(machine, f"decode/bf16/order2/d128/kv32768/g{group}") for machine in every]
        lines.append([f"bfloat16, order 2, decode, 32768 keys, group {group}, of stream",
                      *(percent(row, "of_stream") for row in rows)])
    return table(["", *recordings.heads(every)], lines)
