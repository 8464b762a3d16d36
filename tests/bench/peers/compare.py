"""Puts the passes of tests/bench/peers/run side by side: compare.py DIRECTORY OUT.json"""

import collections
import datetime
import json
import pathlib
import platform
import statistics
import sys


def read(directory):
    times = collections.defaultdict(lambda: {"ours": [], "peer": []})
    for path in directory.glob("ours.*.json"):
        for line in json.loads(path.read_text())["benchmarks"]:
            if line.get("error_occurred"):
                sys.exit(f"{line['name']}: {line['error_message']}")
            case, operation = line["name"].split("/process_time")[0].rsplit(" ", 1)
            times[case, operation]["ours"].append(line["cpu_time"])
    for library in ("seal", "openfhe"):
        for path in directory.glob(f"{library}.*.json"):
            for line in json.loads(path.read_text()):
                times[line["case"], line["operation"]]["peer"].append(line["ms"])
    return times


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def main():
    directory, out = map(pathlib.Path, sys.argv[1:])
    cases = {case["name"]: case for case in json.loads((pathlib.Path(__file__).parent / "cases.json").read_text())}
    rows = []
    print(f"{'case':9} {'operation':21} {'ours, ms':>10} {'peer, ms':>10} {'ratio':>6}  peer")
    for (name, operation), times in sorted(read(directory).items()):
        if not times["peer"] or not times["ours"]:
            continue
        ours, peer = statistics.median(times["ours"]), statistics.median(times["peer"])
        rows.append({**cases[name], "operation": operation, "ours_ms": times["ours"], "peer_ms": times["peer"],
                     "ratio": peer / ours})
        print(f"{name:9} {operation:21} {ours:10.3f} {peer:10.3f} {peer / ours:6.2f}  {cases[name]['peer']}")
    out.write_text(json.dumps({"date": datetime.datetime.now().isoformat(timespec="seconds"),
                               "processor": processor(), "threads": 1, "rows": rows}, indent=1))
    print(f"written to {out}")


if __name__ == "__main__":
    main()
