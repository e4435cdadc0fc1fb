"""`bridle demo`: a scripted model fixes a small project with real tools, through a real gate."""

import click


@click.command()
@click.option("--fast", is_flag=True, help="Without the pauses.")
def command(fast: bool) -> int:
    """Watch a scripted model fix a small project. Needs no key and no network."""
    from bridle.cli.demo_run import show

    return show(fast=fast)
