"""Drama: real nodes as child processes, to whom things happen, with a proof at the end.

    child     one node: its process, and its log read as events
    script    what happens to them and when: one is killed, one is paused and woken
    tale      what happened, in sentences, from their logs

The proof is not in the logs: it is in the documents that the tasks wrote (`steps.find_faults`).
"""
