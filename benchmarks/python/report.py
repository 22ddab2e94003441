# SPDX-License-Identifier: MIT
"""Rows in the form of Google Benchmark's JSON, with the counters of benchmarks/README.md."""
import json


def row(name, case, times, fma_rate, stream_rate, **more):
    """fma_rate, stream_rate: the peaks beside the row, per second; None where unknown."""
    entry = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1, "threads": 1,
             "real_time": times.best * 1e3, "cpu_time": times.best * 1e3, "time_unit": "ms",
             "median_ms": times.median * 1e3, "spread": times.spread, "samples": times.samples,
             "gflops": case.flops / times.best * 1e-9, "gbps": case.bytes / times.best * 1e-9}
    for label, work, rate in (("peak", case.flops, fma_rate), ("stream", case.bytes, stream_rate)):
        if rate:
            entry["of_" + label] = work / times.best / rate
            entry["of_" + label + "_median"] = work / times.median / rate
    if fma_rate:
        entry["peak_gflops"] = fma_rate * 1e-9
    if stream_rate:
        entry["stream_gbps"] = stream_rate * 1e-9
    entry.update({"head_dim": case.head_dim, "query_length": case.query_length, "kv_length": case.kv_length,
                  "heads": case.query_heads, "group": case.group, "batch": case.batch, "window": case.window,
                  "causal": int(case.causal)})
    entry.update(more)
    return entry


def write(path, rows, context):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"context": context, "benchmarks": rows}, file, indent=1)
        file.write("\n")
