# SPDX-License-Identifier: MIT
"""Tables of orders 2 and 3 in docs/performance.md, from what `./dev bench --json` stored of their rows."""
from tables import MISSING, percent, table

SHAPES = ((128, 512), (128, 2048), (128, 8192), (64, 512), (64, 2048), (64, 8192), (80, 2048), (256, 2048))


def number(row, field):
    return f"{row[field]:.0f}" if row else MISSING


def units(results):
    def line(head_dim, tokens, kind):
        name = f"prefill/bf16/order2/d{head_dim}/s{tokens}/{kind}/isa:"
        amx, avx512, avx2 = (results.units.get(f"{name}{isa}/t1") for isa in ("amx", "avx512", "avx2"))
        return [f"{head_dim}, {tokens}, {kind}", number(amx, "gflops"), percent(amx, "of_peak_median"),
                percent(avx512, "of_peak_median"), percent(avx2, "of_peak_median")]

    return table(["head_dim, tokens", "matrix unit, GFLOPS", "of its peak", "AVX-512, of the FMA peak", "AVX2"],
                 [line(*shape, kind) for shape in SHAPES for kind in ("full", "causal")])


PARTS = ("d128/s512/causal", "d128/s2048/full", "d128/s2048/causal", "d128/s8192/full", "d64/s2048/full",
         "d64/s2048/causal")


def unit_parts(results):
    def line(shape):
        head_dim, tokens, kind = shape.split("/")
        amx, avx512 = (results.units.get(f"prefill/f32/order3/{shape}/isa:{isa}/t1") for isa in ("amx", "avx512"))
        return [f"{head_dim[1:]}, {tokens[1:]}, {kind}", number(amx, "gflops"), percent(amx, "of_peak_median"),
                percent(avx512, "of_peak_median")]

    return table(["head_dim, tokens", "matrix unit, GFLOPS", "of the FMA peak", "AVX-512, of the FMA peak"],
                 [line(shape) for shape in PARTS])


def unit_decode(results):
    def line(group):
        rows = [results.units.get(f"decode/bf16/order2/d128/kv32768/g{group}/isa:{isa}/t1")
                for isa in ("amx", "avx512", "avx2")]
        return [f"{group}", *(percent(row, "of_stream_median") for row in rows)]

    return table(["group", "with a matrix unit", "AVX-512", "AVX2"], [line(group) for group in (1, 4, 8, 16)])
