"""Drama: real nodes as child processes, to whom things happen, with a proof at the end.

    child       one node: its process, and its log read as events
    tale        what happened, in sentences, from their logs
    script      nodes that share tasks: one is killed, one is paused and woken
    landfall    nodes that land, flag and apply: the same, and a table halts

    orders      records to land        cargo    what the landfall's streams are given
    headcount   the count of them      jury     what count, `verify` and `audit` say together
    ambush      killed in mid-commit   scene    what documents say at one moment
    home        the landfall's settings and commands

The proof is not in the logs: it is in the documents that the tasks wrote (`steps.find_faults`), and
in the files of lake and table.
"""
