"""Plan mode: what the model is told while it lasts (P4). The gate sees to it that it holds."""

from bridle.policy import Mode

_PLANNING = """\
# Plan mode

You are in plan mode. Explore and think; change nothing. Whatever would write a file, run a command
that changes something, or reach out of the workspace is refused as long as this lasts, so do not
try to find a way around it.

Read what you need to understand the task. Ask the person where their answer decides how to go on.
Then write a plan that somebody could follow: what is to change, in which files, in which order, how
it will be checked, and what you are unsure about. When the plan is ready, call `exit_plan_mode`
with it; the person decides whether you may begin. If there is no such tool, say the plan and stop.
"""


def add_plan_instructions(system: str, mode: Mode) -> str:
    """The system prompt as it is sent in that mode."""
    if mode != "plan":
        return system
    return f"{system}\n\n{_PLANNING}" if system else _PLANNING
