"""`bridle doctor`: what was found on this machine, which model would be used, and why."""

import sys

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A JSON array of findings.")
@click.option("--models", is_flag=True, help="List the known models: context window and price.")
def command(as_json: bool, models: bool) -> int:
    """Say what was found on this machine, and which model would be used."""
    from bridle.cli.checkup import examine, known_models, shown
    from bridle.cli.exit_codes import FAILED
    from bridle.cli.style import paint_for

    findings = list(known_models() if models else examine())
    if as_json:
        import json

        click.echo(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        paint, width = paint_for(sys.stdout), max(len(finding.topic) for finding in findings)
        for finding in findings:
            click.echo("\n".join(shown(finding, paint, width)))
    return FAILED if any(finding.good is False for finding in findings) else 0
