"""bridle, as a user would write it: the log on disk (`disk` durability), the gate on.

Variants, by the environment: `effects` has a tool that is not read-only, so that each call waits
until its intent is on disk; `responses` and `chat` speak the other two protocols.
"""

import os
from typing import Any

import stopwatch

VARIANT = os.environ.get("BENCH_VARIANT", "")
MODELS = {"responses": "openai/bench-model", "chat": "openai-chat/bench-model"}
bridle: Any


def load() -> None:
    """Import the names that are used; `import bridle` alone would load nothing."""
    global bridle
    import bridle

    _ = bridle.build_engine, bridle.provider, bridle.tool, bridle.Limits


async def open_client(url: str, tool: stopwatch.Tool) -> stopwatch.Opened:
    """One engine for all runs; each run is a new session with its own log."""
    name = MODELS.get(VARIANT, "anthropic/bench-model")
    base_url = url if name.startswith("anthropic") else f"{url}/v1"
    effects = VARIANT == "effects"
    engine = bridle.build_engine(
        bridle.provider(name, api_key="k", base_url=base_url),
        tools=[bridle.tool(read_only=not effects)(tool)],
        mode="auto" if effects else "ask",
        limits=bridle.Limits(max_steps=1000),
        workspace=os.environ["BENCH_WORKSPACE"],
        state=os.environ["BENCH_STATE"],
    )

    async def run(prompt: str) -> str:
        result = await engine.run(prompt)
        if result.reason != "done":
            raise RuntimeError(f"{result.reason}: {result.detail or result.error}")
        return str(result.text)

    return run, engine.close


stopwatch.main(load, open_client)
