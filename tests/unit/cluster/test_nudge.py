from headgate.cluster.nudge import Nudge


def test_it_stays_given_until_it_is_taken() -> None:
    nudge = Nudge()
    assert not nudge.take()
    nudge.give()
    nudge.give()
    assert nudge.take()
    assert not nudge.take()


def test_whoever_runs_the_loop_is_woken_each_time() -> None:
    nudge, woken = Nudge(), list[str]()
    nudge.give()  # before anybody listens: kept
    nudge.on_give(lambda: woken.append("first"))
    nudge.on_give(lambda: woken.append("second"))
    assert nudge.take()
    nudge.give()
    assert woken == ["first", "second"]
