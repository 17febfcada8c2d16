"""Hammer: processes write to one store without a pause, some are killed, and a proof follows.

Each process keeps a diary, a file of lines that are only ever added and synced: the intent before a
write, the answer after it.

    intent ──┬── the store said yes ────────────────▶ ack, with the number that the write got
             ├── the time is over, nothing is done ─▶ refused
             ├── the time is over, nobody knows ────▶ unknown
             └── kill -9 ───────────────────────────▶ no line: cut off

What they write lets the proof find each single write again:

    counter   one document {"count": n, "by": {process: {"share": n, "last": write}}}. An increment
              is one replace, adds one to the count and one to its process's share, puts down its
              own name as that process's last, and its number is the new count.
    list      entry n is the document list/<n>, made by create of the first free number; its body
              names the write.

Proved is: every acknowledged write is there once, at the number its process was told; whatever else
is there was cut off between intent and answer: the last write of its process, and there by name.

`judge` decides this from values alone, `writer` is one process, `crew` starts and kills them. A
seat is one of the crew's places; when its process is killed, a new one with a new name sits down.
"""
