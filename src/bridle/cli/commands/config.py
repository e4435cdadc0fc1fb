"""`bridle config`: the settings, where each came from, and where the file lies."""

import os
import sys

import click

DEFAULTS = {"limits.max_steps": 200}  # the engine's own, without its imports


@click.group(name="config")
def command() -> None:
    """Show the settings and where each of them came from."""


@command.command("path")
def path() -> None:
    """Print where the settings file is, or would be."""
    from bridle.config.paths import config_file

    click.echo(config_file(os.environ))


@command.command("show")
@click.option("--json", "as_json", is_flag=True, help="A JSON object.")
def show(as_json: bool) -> None:
    """Every setting: its value and its origin. Keys are masked."""
    from msgspec.structs import replace

    from bridle.cli.exit_codes import complain
    from bridle.cli.style import cells, paint_for, plain
    from bridle.config.loader import load_settings

    loaded = load_settings()
    hooks = _hooks()
    shown = [
        replace(item, value=DEFAULTS.get(item.key)) if item.value is None else item
        for item in loaded.rows()
    ]
    if as_json:
        import json

        found = {item.key: {"value": item.value, "from": item.origin} for item in shown}
        whole = {"file": str(loaded.file), "settings": found, "hooks": hooks}
        click.echo(json.dumps(whole, indent=2))
        return
    paint = paint_for(sys.stdout)
    there = "" if loaded.file.exists() else " (there is none)"
    click.echo(paint.dim(f"file: {loaded.file}{there}"))
    values = ["–" if item.value in ("", None) else plain(str(item.value)) for item in shown]
    key_width = max(len(item.key) for item in shown)
    widest = min(48, max(map(cells, values)))
    for item, value in zip(shown, values, strict=True):
        line = f"{item.key:{key_width}} {value}{' ' * (widest - cells(value))}"
        is_set = item.origin != "default"
        click.echo(f"{line if is_set else paint.dim(line)} {paint.dim(item.origin)}")
    for one in hooks:
        click.echo(f"{'hook':{key_width}} {plain(one['does'])} {paint.dim(plain(one['from']))}")
    for warning in loaded.warnings:
        complain(warning)


def _hooks() -> list[dict[str, str]]:
    """The hooks that run in the current folder: what, and from where. Raise `ConfigError`."""
    from bridle.config.paths import hooks_file

    places = (str(hooks_file(os.environ)), ".bridle/hooks.yaml")
    if not any(os.path.lexists(one) for one in places):
        return []
    from bridle.config.folder import load_hooks

    return [{"does": one.summary, "from": one.origin} for one in load_hooks(".").items]
