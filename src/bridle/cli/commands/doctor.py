"""`bridle doctor`: what is installed and set up on this machine, and which model is used."""

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of findings.")
@click.option("--models", is_flag=True, help="List the known models: context window and price.")
def command(as_json: bool, models: bool) -> int:
    """Check what is set up on this machine, and show which model would be used and why.

    Exit codes: 0 no problems, 1 problems.
    """
    from bridle.cli.checkup import print_checkup

    return print_checkup(models=models, as_json=as_json)
