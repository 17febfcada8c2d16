"""Advice: the next command that a finding names. Pure."""

import shlex


def look_again(stream: str) -> str:
    return f"headgate audit --stream {shlex.quote(stream)}"


def show_journal(stream: str, shard: int) -> str:
    return f"headgate journal show {shlex.quote(f'{stream}/{shard}')}"


def restore(what: str, stream: str) -> str:
    return f"put {what} back from a backup, then {look_again(stream)}"
