"""Findings: what an audit or a verification found, for people."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from headgate.audit import Finding
from headgate.cli import console


def show_findings(findings: Iterable[Finding], left_out: int) -> None:
    for finding in findings:
        is_damage = finding.invariant is None
        show_finding("damage" if is_damage else f"invariant {finding.invariant}", "red", finding)
    if left_out:
        console.results().print(f"and {left_out:,} more, which are not shown")


def show_finding(title: str, style: str, finding: Finding) -> None:
    out = console.results()
    out.print(
        Text.assemble((title, style), console.printable(f"  {finding.subject}  {finding.words}"))
    )
    out.print(console.printable(f"  meaning  {finding.meaning}"))
    for number, line in enumerate(finding.next.split("\n")):
        out.print(console.printable(f"  {'' if number else 'next':7}  {line}"))


def for_settings(findings: Iterable[Finding], config: Path | None) -> tuple[Finding, ...]:
    """Every advice ends in a command: it is for the same settings."""
    if config is None:
        return tuple(findings)
    named = f" --config {shlex.quote(str(config))}"
    return tuple(replace(one, next=f"{one.next}{named}") for one in findings)
