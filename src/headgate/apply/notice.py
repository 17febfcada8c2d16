"""Notice: why a table stands still, what that means, and the exact commands. Pure."""

from shlex import quote

from headgate.apply.table_document import SYSTEM, TableDocument

REASON = '--reason "…"'


def run_name(table: str, run: int) -> str:
    return f"{table}-{run:06}"


def lost_command(table: str) -> str:
    """For a table that is gone, and cannot be closed any more."""
    return f"headgate table resume {quote(table)} --lost {REASON}"


def notice(table: str, document: TableDocument, waiting: int) -> str:
    """`waiting`: entries of its backlog, the one it stopped at included; "": it runs."""
    if document.state == "running":
        return ""
    halt, name = document.halt, quote(table)
    batch = "" if halt is None else halt.batch
    cause = "not recorded" if halt is None else halt.words
    lines = [f"{document.state}: {table} {_stopped(document, batch)}"]
    if document.current is not None:
        current = document.current
        lines.append(f"  run      {run_name(table, current.run)}, attempt {current.attempt}")
    lines.append(f"  cause    {' '.join(cause.split())}")
    lines.append(f"  meaning  {_meaning(document, batch, waiting)}")
    if document.state == "halting":
        lines.append("  next     headgate status: it is halted once nobody can change the table;")
        lines.append(f"           if its folder is gone for good: {lost_command(table)}")
        return "\n".join(lines)
    if batch:
        skip = f"headgate table skip {name} --batch {quote(batch)} {REASON}"
        mark = f"headgate table mark-applied {name} --batch {quote(batch)} {REASON}"
        resume = f"headgate table resume {name} {REASON}"
        commands = [
            (f"headgate table retry {name} {REASON}", "after the cause is removed"),
            *([] if document.tries else [(resume, "takes the table as it is now")]),
            (skip, "leaves it out for good, on record"),
            (mark, "its rows are in the table already"),
        ]
    else:
        commands = [(f"headgate table resume {name} {REASON}", "goes on where it stopped")]
    width = max(len(command) for command, _ in commands)
    heads = ["  next     ", *["           "] * len(commands)]
    lines += [
        f"{head}{command:<{width}}   {effect}"
        for head, (command, effect) in zip(heads, commands, strict=False)
    ]
    return "\n".join(lines)


def _stopped(document: TableDocument, batch: str) -> str:
    halt = document.halt
    if halt is not None and halt.who != SYSTEM:
        behind = document.applied_up_to
        return f"was stopped by {halt.who}{f' behind batch {behind}' if behind else ''}"
    if document.tries:
        times = "once" if document.tries == 1 else f"{document.tries} times"
        return f"stopped at batch {batch}, which failed {times}"
    return f"stopped at batch {batch}"


def _meaning(document: TableDocument, batch: str, waiting: int) -> str:
    if document.state == "halting":
        return "a node may still be changing the table; its run is being closed"
    if not batch:
        return f"the table does not change; {_counted(waiting)} in its backlog"
    is_failed = document.current is not None and document.tries > 0
    first = "nothing of this batch is in the table" if is_failed else "the table does not change"
    return f"{first}; {_counted(max(0, waiting - 1), 'later ')} behind it"


def _counted(number: int, which: str = "") -> str:
    return f"1 {which}batch waits" if number == 1 else f"{number} {which}batches wait"
