"""`python -m bench`: measure, print the tables, write bench/results/.

python -m bench                    everybody, about 45 minutes on two cores
python -m bench --quick            the floor and bridle only, about ten minutes
python -m bench --peers agno,strands --only turns,deltas
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from bench.chat.measures import CHAT
from bench.contenders import BY_NAME, CONTENDERS, FLOOR, HERE, OURS, Contender
from bench.environments import prepare
from bench.gate.measures import GATE
from bench.measures import MEASURES, commands, pulled_in, take
from bench.plot import draw
from bench.report import Results, to_markdown
from bench.screen.measures import SCREEN
from bench.server.measures import SERVER
from bench.sessions.measures import LASTING
from bench.sessions.measures import take as take_sessions
from bench.sessions.picture import draw as draw_sessions
from bench.stage import Stage

ALONE = (*LASTING, *GATE, *SERVER, *SCREEN, *CHAT)
NAMES = [measure.name for measure in (*MEASURES, *ALONE)] + ["commands"]
GROUPS = {
    "screen": [measure.name for measure in SCREEN],
    "chat": [measure.name for measure in CHAT],
}


def chosen() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the floor and bridle, few rounds")
    parser.add_argument("--only", default=",".join(NAMES), help=f"of {','.join((*NAMES, *GROUPS))}")
    parser.add_argument("--peers", help="names, with commas; the floor and bridle always run")
    parser.add_argument("--again", action="store_true", help="draw the last full run once more")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where results go")
    options = parser.parse_args()
    options.only = [name for word in options.only.split(",") for name in GROUPS.get(word, [word])]
    if unknown := set(options.only) - set(NAMES):
        parser.error(f"no measure is called {', '.join(sorted(unknown))}")
    if unknown := set((options.peers or "").split(",")) - {*BY_NAME, ""}:
        parser.error(f"no contender is called {', '.join(sorted(unknown))}")
    return options


def taking_part(options: argparse.Namespace) -> list[Contender]:
    """The floor and ours, and the peers that were asked for."""
    if not {measure.name for measure in MEASURES} & {*options.only}:
        return [OURS]
    if options.peers:
        wanted = {FLOOR.name, OURS.name, *options.peers.split(",")}
        return [contender for contender in CONTENDERS if contender.name in wanted]
    if options.quick:
        return [contender for contender in CONTENDERS if contender.kind != "peer"]
    return list(CONTENDERS)


def main() -> None:
    """Measure and report."""
    options = chosen()
    results = recalled(options.out) if options.again else measured(options)
    write(results, options)
    sys.exit(any(verdict.holds is False for verdict in results.verdicts()))


def measured(options: argparse.Namespace) -> Results:
    """A run of the benchmark."""
    contenders = taking_part(options)
    for name in dict.fromkeys(contender.environment for contender in contenders):
        prepare(name)
    started, load = time.monotonic(), os.getloadavg()[0]
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    # The log has to lie on a real disk, so this is not the system's folder for temporary files.
    (HERE / ".state").mkdir(exist_ok=True)
    results = Results({}, {}, [], 0.0, load, when)
    try:
        with Stage(Path(tempfile.mkdtemp(dir=HERE / ".state"))) as stage:
            take(stage, contenders, options.only, options.quick, results.taken)
            if "commands" in options.only:
                results.commands = commands(stage, 5 if options.quick else 15)
                results.pulled_in = pulled_in()
            take_sessions(stage, ALONE, options.only, options.quick, results.taken)
    except KeyboardInterrupt:
        print("\ninterrupted: the report has what was measured so far")
        options.only = []
    results.seconds = time.monotonic() - started
    return results


def recalled(folder: Path) -> Results:
    """The last full run."""
    kept = folder / "samples.json"
    if not kept.exists():
        raise SystemExit("there is no full run to draw: run `python -m bench` first")
    return Results(**json.loads(kept.read_text()))


def write(results: Results, options: argparse.Namespace) -> None:
    """Print the report and keep it; a quick or partial run does not replace a full one."""
    text = to_markdown(results)
    print(f"\n{text}")
    full = not options.quick and not options.peers and options.only == NAMES
    name = "latest" if full else "partial"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{name}.md").write_text(text)
    (options.out / f"{name}.json").write_text(json.dumps(results.to_json(), indent=1) + "\n")
    (options.out / f"{name}.svg").write_text(draw(results.taken))
    (options.out / f"{name}-sessions.svg").write_text(draw_sessions(results.taken))
    if full and not options.again:
        (options.out / "samples.json").write_text(json.dumps(asdict(results)))
    print(f"written: {os.path.relpath(options.out / name)}.md, .json, .svg, -sessions.svg")


if __name__ == "__main__":
    main()
