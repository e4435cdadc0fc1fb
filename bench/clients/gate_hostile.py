"""Judges and decides hostile command lines, and says how long that took and what went wrong.

    gate_hostile.py WORKSPACE COUNT

The collector of garbage runs as it does for everybody; making a line is not part of its time.
"""

import json
import sys
import time

from gate_lines import hostile

from bridle.messages import ToolCall
from bridle.runtime.dry_run import DryRun


def main() -> None:
    """Each line once, in the mode that asks."""
    root, count = sys.argv[1], int(sys.argv[2])
    dry_run = DryRun(root)
    dry_run.judge(ToolCall("", "shell", {"command": "ls"}))
    spent, cpu, failed, allowed = [], [], 0, 0
    for line, changes in hostile(count):
        call = ToolCall("", "shell", {"command": line})
        began, started = time.thread_time(), time.perf_counter()
        try:
            verdict = dry_run.judge(call).decision.verdict
        except Exception as error:  # whatever it is, it must not happen, and is counted
            failed += 1
            print(f"{error!r} for {line[:200]!a}", file=sys.stderr)
            verdict = ""
        spent.append((time.perf_counter() - started) * 1000)
        cpu.append((time.thread_time() - began) * 1000)
        allowed += changes and verdict == "allow"
    spent.sort()
    cpu.sort()
    found = {
        "p99_ms": spent[int(len(spent) * 0.99)],
        "worst_ms": spent[-1],
        "p99_cpu_ms": cpu[int(len(cpu) * 0.99)],
        "worst_cpu_ms": cpu[-1],
        "mean_ms": sum(spent) / len(spent),
        "failed": failed,
        "allowed": allowed,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
