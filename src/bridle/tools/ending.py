"""What the model is told of a command that has ended: its output, how, and what else to know."""

import re
import signal

from bridle.protocols.tool import ToolResult
from bridle.tools.jobs import Job
from bridle.workspace.process.command import ExitStatus
from bridle.workspace.text import one_line
from bridle.workspace.watched import Mended

_SHOWN = 5  # protected files that are named
_REFUSED = re.compile(
    r"permission denied|operation not permitted|read-only file ?system|network is unreachable|"
    r"could not resolve|name resolution|EACCES|EPERM|EROFS|ENETUNREACH|EAI_AGAIN|"
    r"(?:failed|unable|couldn't|could not|cannot) (?:to )?connect|"
    r"address family not supported|device or resource busy",
    re.IGNORECASE,
)
_LIMITS = {
    "bubblewrap": "only the workspace and a temporary folder can be written, "
    "and the home folder is hidden",
    "landlock": "only the workspace and $TMPDIR can be written, and the home folder cannot be read",
}
_NO_NETWORK = {"bubblewrap": "no network, ", "landlock": "no network and no sockets, "}


def told(
    output: str, ended: ExitStatus, level: str, seconds: float | None, *, network: bool = False
) -> tuple[str, list[str]]:
    """The output, how it ended, and a word on the sandbox where it may have been in the way."""
    notes = [_how(ended, seconds)]
    if ended.code != 0 and level in _LIMITS and _REFUSED.search(output):
        limits = _LIMITS[level] if network else _NO_NETWORK[level] + _LIMITS[level]
        notes.append(
            f"the sandbox ({level}) is active: {limits}. If it was in the way, "
            "try again with sandbox=false; a person is asked"
        )
    return output or "(no output)\n", notes


def result(ok: bool, told: tuple[str, list[str]], data: object, mended: Mended) -> ToolResult:
    """All of it together. Where protected files were changed the turn has to end."""
    output, notes = told
    stops = ""
    if mended:
        stops = f"a command changed protected files: {_names(mended)}"
        notes = [*notes, _undone(mended)]
    if mended.undone:
        shown = [one_line(name, 400) for name in mended.undone[:_SHOWN]]
        more = f" and {len(mended.undone) - _SHOWN} more" if len(mended.undone) > _SHOWN else ""
        said = (
            "only a person may allow changes to files that run by themselves, so the command's "
            f"changes were undone: {', '.join(shown)}{more}. Use write or edit; a person is asked"
        )
        notes = [*notes, said]
    separator = "" if output.endswith("\n") or not output else "\n"
    text = output + separator + "\n".join(f"[{note}]" for note in notes if note)
    return ToolResult(ok and not mended, text, data, stops=stops)


def _how(ended: ExitStatus, seconds: float | None) -> str:
    if ended.timed_out:
        said = (
            f"timed out after {round(seconds or 0, 1):g} s; the command and its children were ended"
        )
    elif ended.code is not None and ended.code < 0:
        said = f"ended by signal {_signal_name(-ended.code)}"
    else:
        said = f"exit code {ended.code}"
    return said + ("; a process that it started still runs" if ended.left_behind else "")


def _undone(mended: Mended) -> str:
    if mended.lost:
        return f"protected files were changed and could not all be restored: {_names(mended)}"
    return f"protected files were changed and have been restored: {_names(mended)}"


def _names(mended: Mended) -> str:
    found = [one_line(name, 200) for name in (*mended.lost, *mended.restored)]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def look(job: Job) -> ToolResult:
    """What a job has written since somebody looked, and how it stands."""
    output = job.read()
    mended, job.mended = job.mended, Mended()
    said = output, [_state(job)]
    if job.ended:
        said = told(output, job.ended, job.level, job.seconds, network=job.network)
    said[1].append(job.explain(output, job.ended is not None and job.ended.code != 0))
    ok = job.is_running or (job.ended is not None and job.ended.code == 0)
    data = {
        "job": job.name,
        "output": output,
        "running": job.is_running,
        "exit_code": job.ended.code if job.ended else None,
        "sandbox": job.level,
    }
    return result(ok, said, data, mended)


def _state(job: Job) -> str:
    if job.is_running:
        return f"{job.name} is still running"
    return job.trouble or f"{job.name} was stopped"
