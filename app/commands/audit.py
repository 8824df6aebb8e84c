"""rollbook audit."""

import sys
from dataclasses import asdict
from pathlib import Path

import click

from ..options import book_options, open_book
from ..output import counted, print_json, print_table


@click.command("audit")
@book_options
def command(uri: str, settings_path: Path | None, as_json: bool) -> None:
    """Check the invariants on every row; exit code 1 if one is broken."""
    from ...ledger import audit, rules

    with open_book(uri, settings_path) as book:
        found = audit(book)
    held = len(rules()) - len({offence.rule for offence in found})
    if as_json:
        offences = [asdict(offence) for offence in found]
        print_json({"rules": len(rules()), "held": held, "offences": offences})
    else:
        if found:
            rows = [[offence.rule, offence.subject, offence.detail] for offence in found]
            print_table(["rule", "subject", "detail"], rows)
        click.echo(f"{held} of {counted(len(rules()), 'rule')} held, {_told(len(found))}")
    if found:
        sys.exit(1)


def _told(offences: int) -> str:
    return counted(offences, "offence") if offences else "no offence"
