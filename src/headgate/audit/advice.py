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


def without_a_backup(stream: str, hour: Period, path: str, hold: str, named: str = "") -> str:
    """Two lines, of a damaged file in a flagged hour: nobody takes that for complete, and where
    its rows came from. `hold`: a path in the lake; `named`: options that name the settings."""
    of_it = f"{shlex.quote(stream)} {hour}"
    withdraw = f"headgate flags withdraw {of_it} --reason 'a file of it is damaged'{named}"
    return (
        f"without a backup, keep its readers off: put a file {hold} into the lake, so that it is "
        f"not flagged again, then {withdraw}\n"
        "what it was read from, to look for it in the source: headgate locate "
        f"{shlex.quote(path)}{named}"
    )


def halt_table(table: str) -> str:
    return f"headgate table halt {shlex.quote(table)} --reason 'the audit found something'"
