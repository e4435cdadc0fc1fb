"""`bridle demo`: a scripted model fixes a small project, with real tools and real approvals."""

import click


@click.command()
@click.option("--fast", is_flag=True, help="Run without pauses.")
def command(fast: bool) -> int:
    """Watch a scripted model fix a small project. Needs no API key and no network."""
    from bridle.cli.demo_run import run_demo

    return run_demo(fast=fast)
