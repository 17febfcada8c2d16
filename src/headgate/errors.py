"""Errors, grouped by what the caller does next.

    HeadgateError
     ├── Conflict        somebody wrote first      read again, decide again
     ├── Unavailable     nothing was done          try again later
     ├── OutcomeUnknown  it may have been done     look, then decide
     ├── Fenced          the right is lost         stop; this is no failure
     ├── Invalid         the input is wrong        fix the settings or the call
     ├── Corrupt         stored state is damaged   stop what depends on it; never repair in silence
     └── Halted          a person must decide      the message names the command

A new group is made only if some caller would act differently. A message says what happened, what it
means, and the next command.
"""


class Ended(BaseException):
    """The process is over: a simulation ends one so. Nobody catches this, not even the places that
    catch everything else."""


class HeadgateError(Exception):
    """The common base: whoever wants to catch all of ours, and nothing else, catches this."""


class Conflict(HeadgateError):
    """Somebody wrote first, and nothing of this call was written. Read again, decide again."""


class Unavailable(HeadgateError):
    """Nothing was done: the other side was out of reach, or refused for now. Try again later."""


class OutcomeUnknown(HeadgateError):
    """The request may have taken effect, or may still do so. Look at the state, then decide."""


class Fenced(HeadgateError):
    """A newer holder exists. Stop; do not count it as a failure."""


class Invalid(HeadgateError):
    """The input cannot be right, whenever it is tried. Fix the settings or the call."""


class Corrupt(HeadgateError):
    """Stored state breaks a rule. What depends on it stops; nothing is repaired in silence."""


class Halted(HeadgateError):
    """Stopped until a person decides; the message names the command."""
