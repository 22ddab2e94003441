# SPDX-License-Identifier: MIT
"""Keeps the rows of ./dev bench peers --types and --units beside the recording of this machine. Each row says when,
with which commit and which version of its peer it was measured, since some may be measured again without the others."""
import datetime
import json
import re

import record
import results


def case_of(row):
    """The name of a row without who computed it."""
    return re.sub("^peer:[^/]*/|isa:[^/]*/", "", row["name"])


def peer_of(row):
    """Empty for rapt."""
    found = re.match("peer:([^/]*?)(-folded)?/", row["name"])
    return found[1] if found else ""


def commit_of_library():
    """The last one that changed it."""
    return results.output("git", "log", "-1", "--format=%h", "--", "src", "include") or results.NO_COMMIT


def stamped(row, about):
    """What a row already says of itself stays."""
    versions = dict(part.split(" ", 1) for part in about["peers"].split(", ") if " " in part)
    version = {"version": versions[peer_of(row)]} if peer_of(row) in versions else {}
    return row | {"date": about["date"], "commit": about["commit"]} | version | row


def summary(rows, rapt):
    """Of rows from one recording or several: from the first date to the last, all commits, all versions."""
    rows = sorted(rows, key=lambda row: row["date"])
    dates = dict.fromkeys((rows[0]["date"], rows[-1]["date"]))
    versions = dict.fromkeys(f"{peer_of(row)} {row['version']}" for row in rows if "version" in row)
    return {"rapt": rapt, "peers": ", ".join(versions), "date": " to ".join(dates),
            "commit": ", ".join(dict.fromkeys(row["commit"] for row in rows))}


def store(rows, about, isa):
    """Rows that were not measured stay as they are, and so does a case whose limit came out below what was reached:
    something held the peak back."""
    beyond = {case_of(row) for row in rows if row.get("of_stream_median", 0) > 1}
    for case in sorted(beyond):
        print(f"not stored, beyond the limit, measure again: {case}")
    rows = [row for row in rows if case_of(row) not in beyond]
    if not rows:
        print("nothing to store")
        return
    path = results.types_path(record.path_here(isa))
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"peers": []}
    found = {row["name"]: stamped(row, kept["machine"]) for row in kept["peers"]}
    about = about | {"date": datetime.date.today().isoformat(), "commit": commit_of_library()}
    found.update({row["name"]: stamped(results.compact(row), about) for row in rows})
    results.save(path, {"machine": summary(found.values(), about["rapt"]), "peers": list(found.values())})
    print(path)
