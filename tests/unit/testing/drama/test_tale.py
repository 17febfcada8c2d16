from headgate.testing.drama.child import Event, event_of
from headgate.testing.drama.tale import QUIET_S, Tale

JOINED = [
    Event("node-1", "member.joined", {"number": "1", "session": "s1"}),
    Event("node-2", "member.joined", {"number": "2", "session": "s2"}),
]


def claimed(node: str, epoch: int, *tasks: str) -> list[Event]:
    return [Event(node, "task.claimed", {"task": task, "epoch": str(epoch)}) for task in tasks]


def test_a_line_of_a_log_is_an_event_and_talk_is_not() -> None:
    line = '2026-11-01T13:05:00Z info task.fenced task=a/1 why="epoch \\"1\\" is over"'

    assert event_of("n", line) == Event(
        "n", "task.fenced", {"task": "a/1", "why": 'epoch "1" is over'}
    )
    assert event_of("n", "node n joined as number 3") is None


def test_many_claims_are_one_sentence_once_they_have_come_to_an_end() -> None:
    tale = Tale()

    assert tale.hear(JOINED, 0) == ["node-1 joined as number 1", "node-2 joined as number 2"]
    assert tale.hear(claimed("node-1", 1, "a", "b", "c"), 1) == []
    assert tale.flush(1) == []
    assert tale.flush(1 + QUIET_S) == ["node-1 claimed 3 tasks, epoch 1"]
    assert tale.flush(9) == []


def test_a_task_of_a_closed_session_is_taken_over_whatever_log_was_read_first() -> None:
    tale = Tale()
    tale.hear([*JOINED, *claimed("node-2", 1, "a", "b")], 0)
    closed = Event("node-1", "session.closed", {"session": "s2", "why": "it stood still"})

    said = tale.hear([*claimed("node-1", 2, "a", "b"), closed], 1)

    assert said == ["node-1 closed the session of node-2: it stood still"]
    assert "node-1 took over 2 tasks of node-2, epoch 2" in tale.flush(9)
    assert tale.takeovers == 2


def test_a_task_that_was_given_back_is_not_taken_over() -> None:
    tale = Tale()
    tale.hear([*JOINED, *claimed("node-2", 1, "a")], 0)
    tale.hear([Event("node-2", "task.given_back", {"task": "a", "epoch": "1"})], 1)
    tale.hear([Event("node-2", "session.closed", {"session": "s2", "why": "left"})], 1)

    tale.hear(claimed("node-1", 2, "a"), 2)

    assert tale.takeovers == 0


def test_who_wakes_up_loses_its_session_and_joins_again() -> None:
    tale = Tale()
    tale.hear(JOINED, 0)
    tale.wake("node-2")

    said = tale.hear(
        [
            Event("node-2", "session.lost", {"session": "s2"}),
            Event("node-2", "task.fenced", {"task": "a", "epoch": "1", "why": "epoch 1 is over"}),
        ],
        1,
    )
    said += tale.hear([Event("node-2", "member.joined", {"number": "3", "session": "s3"})], 2)

    assert said == [
        "node-2 found its session closed, and drops all it held",
        "node-2 was refused a late write: epoch 1 is over",
        "node-2 joined again as number 3",
    ]
    assert (tale.lost, tale.refused) == (1, 1)
