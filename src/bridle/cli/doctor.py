"""`bridle doctor`: what was found on this machine, which model would be used, and why."""

import sys

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A JSON array of findings.")
def command(as_json: bool) -> int:
    """Say what was found on this machine, and which model would be used."""
    from bridle.cli.checkup import examine, shown
    from bridle.cli.failure import FAILED
    from bridle.cli.style import paint_for

    findings = list(examine())
    if as_json:
        import json

        click.echo(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        paint = paint_for(sys.stdout)
        for finding in findings:
            click.echo("\n".join(shown(finding, paint)))
    return FAILED if any(finding.good is False for finding in findings) else 0
