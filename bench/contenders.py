"""Who takes part: the floor, ours, and the peers, each with its environment and its client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
Kind = Literal["floor", "ours", "peer"]


@dataclass(frozen=True)
class Contender:
    """One row of the tables. `only` names the measures that a variant takes part in."""

    name: str
    label: str
    kind: Kind
    protocol: str
    env: str = ""
    variant: str = ""
    only: tuple[str, ...] = ()

    @property
    def environment(self) -> str:
        """The name of its virtual environment and of its client."""
        return self.env or self.name

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return HERE / ".envs" / self.environment / "bin" / "python"

    @property
    def client(self) -> Path:
        """Its script."""
        return HERE / "clients" / f"with_{self.environment}.py"

    def takes(self, measure: str) -> bool:
        """Does it take part in this measure?"""
        return not self.only or measure in self.only


FLOOR = Contender("floor_aiohttp", "floor (aiohttp + msgspec)", "floor", "anthropic")
OURS = Contender("bridle", "bridle", "ours", "anthropic")
STREAMS = ("deltas", "turns")
CONTENDERS = (
    FLOOR,
    OURS,
    Contender(
        "bridle_effects",
        "bridle, tool with effects",
        "ours",
        "anthropic",
        env="bridle",
        variant="effects",
        only=("turns", "many200"),
    ),
    Contender(
        "bridle_responses",
        "bridle, Responses",
        "ours",
        "responses",
        env="bridle",
        variant="responses",
        only=STREAMS,
    ),
    Contender(
        "bridle_chat",
        "bridle, Chat Completions",
        "ours",
        "chat",
        env="bridle",
        variant="chat",
        only=STREAMS,
    ),
    Contender("anthropic_sdk", "anthropic SDK", "peer", "anthropic"),
    Contender("openai_sdk", "openai SDK", "peer", "chat"),
    Contender("agno", "agno", "peer", "anthropic"),
    Contender("langchain", "langchain", "peer", "anthropic"),
    Contender("openai_agents", "openai-agents", "peer", "responses"),
    Contender("pydantic_ai", "pydantic-ai", "peer", "anthropic"),
    Contender("strands", "strands", "peer", "anthropic"),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
