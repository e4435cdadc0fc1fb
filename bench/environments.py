"""A virtual environment for each contender, made on first use and when its pins change."""

import hashlib
import subprocess
import sys
from pathlib import Path

from bench.contenders import HERE

ENVIRONMENTS = HERE / ".envs"


def prepare(name: str) -> Path:
    """The environment of that name with exactly its pinned packages; where it lies."""
    home = ENVIRONMENTS / name
    pins = HERE / "requirements" / f"{name}.txt"
    mark = home / ".pins"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return compiled(home, name)
    print(f"making the environment of {name} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    install(home, "-r", str(pins))
    if name == "bridle":
        install(home, "--no-deps", "-e", str(HERE.parent))
        check(home)
    mark.write_text(wanted)
    return compiled(home, name)


def compiled(home: Path, name: str) -> Path:
    """Ours lies in a folder that is worked on: its bytecode as pip leaves that of everybody."""
    if name == "bridle":
        command = [home / "bin" / "python", "-m", "compileall", "-q", HERE.parent / "src"]
        subprocess.run(command, check=True)
    return home


def check(home: Path) -> None:
    """Ours was installed without its dependencies: stop if the pins lack one of them."""
    pip = [str(home / "bin" / "python"), "-m", "pip", "check"]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench/requirements/{home.name}.txt is not complete:\n{done.stdout}")


def install(home: Path, *what: str) -> None:
    """pip, quiet unless it fails."""
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *what]
    done = subprocess.run(pip, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"pip could not fill {home.name}:\n{done.stderr.strip()[-2000:]}")
