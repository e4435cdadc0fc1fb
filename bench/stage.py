"""Where a measure happens: the fake vendor on one core, one client at a time on the other.

Starts and ends processes, sees to limits and folders. Knows nothing of what is measured.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.contenders import HERE, Contender

Sample = dict[str, Any]


class Stage:
    """The vendor and the cores; a context manager, so that nothing outlives the benchmark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used = 0

    def __enter__(self) -> "Stage":
        raise_file_limit()
        self.cores = cores = sorted(os.sched_getaffinity(0))
        first = [str(cores[0])] if len(cores) > 1 else []
        self.vendor = subprocess.Popen(
            [sys.executable, "-m", "bench.vendor", *first],
            cwd=HERE.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the harness, which then ends the vendor
            text=True,
        )
        assert self.vendor.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.vendor.stdout.readline())}"
        if len(cores) > 1:
            os.sched_setaffinity(0, {cores[-1]})  # clients inherit it; the harness only waits
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.vendor.stdin is not None and self.vendor.stdout is not None
        self.vendor.stdin.close()
        self.vendor.wait()
        self.vendor.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def times(self) -> dict[str, list[float]]:
        """What the vendor has seen since it was last asked."""
        with urllib.request.urlopen(f"{self.url}/_reset") as response:
            told: dict[str, list[float]] = json.load(response)
        return told

    def play(self, contender: Contender, *words: str, patience: float = 300) -> Sample:
        """Run a client once; its line of JSON, with what the vendor saw, or an `error`."""
        workspace = self.folder / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        environ = os.environ | {
            "BENCH_WORKSPACE": str(workspace),
            "BENCH_STATE": str(self.state),
            "BENCH_VARIANT": contender.variant,
        }
        measure, *rest = words
        command = [str(contender.python), str(contender.client), measure, self.url, *rest]
        self.times()
        started = time.monotonic()
        sample = outcome(command, environ, patience)
        sample["seconds"] = time.monotonic() - started
        seen = self.times()
        if seen["asked"]:
            sample["first_ms"] = (seen["asked"][0] - started) * 1000
        sample["steps_ms"] = steps(seen) if measure == "parallel" else []
        return sample

    @contextmanager
    def all_cores(self) -> Iterator[None]:
        """For clients that ask no vendor: they may use its core, too."""
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        try:
            yield
        finally:
            os.sched_setaffinity(0, mine)

    @property
    def state(self) -> Path:
        """Where the next client keeps its sessions."""
        return self.folder / f"state-{self._used}"

    def renew(self) -> None:
        """Another place for the next client's sessions.

        Those of the last one stay to the end: where thousands of files were deleted a moment ago,
        ext4 spends a good part of making a new one on passing over them.
        """
        self._used += 1


def steps(seen: dict[str, list[float]]) -> list[float]:
    """From a reply with calls to the request with their results, in ms; the first is a warm-up."""
    asked, answered = seen["asked"], seen["answered"]
    return [(asked[at + 1] - answered[at]) * 1000 for at in range(2, len(asked) - 1, 2)]


def timed(
    command: list[str], environ: dict[str, str]
) -> tuple[subprocess.CompletedProcess[str], float]:
    """A command that has ended, and its seconds on the wall."""
    started = time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    return done, time.perf_counter() - started


def outcome(
    command: list[str], environ: dict[str, str], patience: float, folder: Path | None = None
) -> Sample:
    """What a client printed, or why it could not."""
    try:
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=patience, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not finished after {patience:.0f} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        trouble = done.stderr.strip().splitlines() or ["no output"]
        return {"error": trouble[-1][:300]}
    printed: Sample = json.loads(lines[-1])
    return printed


def raise_file_limit() -> None:
    """A thousand runs need a few thousand files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16_384 if hard == resource.RLIM_INFINITY else min(hard, 16_384)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
