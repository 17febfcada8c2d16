"""Advice: the next command that a finding names. Pure."""

import shlex

from headgate.periods import Period


def look_again(stream: str) -> str:
    return f"headgate audit --stream {shlex.quote(stream)}"


def show_journal(stream: str, shard: int) -> str:
    return f"headgate journal show {shlex.quote(f'{stream}/{shard}')}"


def restage(stream: str, shard: int) -> str:
    name = shlex.quote(f"{stream}/{shard}")
    return f"headgate journal restage {name} --reason 'what was staged is gone'"


def restore(what: str, stream: str) -> str:
    return f"put {what} back from a backup, then {look_again(stream)}"


def repair_flags(period: Period) -> str:
    """Raises again what is missing in this hour or day."""
    return f"headgate flags repair --from {period} --to {period} --reason 'it was deleted'"


def halt_table(table: str) -> str:
    return f"headgate table halt {shlex.quote(table)} --reason 'the audit found something'"
