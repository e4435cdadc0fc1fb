"""Decides everyday command lines in a real repository, no two alike; says how long one took.

gate_explain.py WORKSPACE PASSES
"""

import json
import sys
import time

from gate_lines import everyday

from bridle.messages import ToolCall
from bridle.runtime.dry_run import DryRun


def main() -> None:
    """The mean over all lines, and the time of the very first."""
    root, passes = sys.argv[1], int(sys.argv[2])
    calls = [ToolCall("", "shell", {"command": line}) for line in everyday(passes + 1)]
    dry_run = DryRun(root)
    started = time.perf_counter()
    dry_run.judge(calls[0])
    first = (time.perf_counter() - started) * 1000
    warm, measured = calls[: len(calls) // (passes + 1)], calls[len(calls) // (passes + 1) :]
    for call in warm:
        dry_run.judge(call)
    verdicts: dict[str, int] = {}
    began, started = time.thread_time(), time.perf_counter()
    for call in measured:
        verdict = dry_run.judge(call).decision.verdict
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    spent = (time.perf_counter() - started) / len(measured) * 1e6
    cpu = (time.thread_time() - began) / len(measured) * 1e6
    print(json.dumps({"us": spent, "cpu_us": cpu, "first_ms": first, "verdicts": verdicts}))


if __name__ == "__main__":
    main()
