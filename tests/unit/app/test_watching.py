"""A session whose jobs stand still is given up once its time is over."""

from headgate.app.watching import LOOK_MS_MAX, LOOK_MS_MIN, Watch
from headgate.engine.stall import StageFacts
from headgate.testing.manual import ManualAmbient

MINUTE_MS = 60_000


def test_a_session_is_given_up_with_a_reason_and_not_before_its_time() -> None:
    ambient, said = ManualAmbient(), list[str]()
    stages = [StageFacts(1, 0, active=0, ended=0)]

    def give_up(words: str) -> None:
        said.append(words)
        stages.clear()

    watch = Watch(MINUTE_MS, lambda: tuple(stages), give_up, ambient)
    began_ms = ambient.monotonic_ms()
    for _ in range(30):
        due_ms = watch.tick()
        if said:
            break
        ambient.pass_ms(due_ms - ambient.monotonic_ms())

    assert MINUTE_MS <= ambient.monotonic_ms() - began_ms <= MINUTE_MS + LOOK_MS_MAX
    assert "no task of its jobs ran for 1 min" in said[0]
    ambient.pass_ms(10 * MINUTE_MS)
    watch.tick()
    assert len(said) == 1


def test_it_looks_often_enough_and_not_all_the_time() -> None:
    ambient = ManualAmbient()
    pauses = [
        Watch(limit_ms, tuple, lambda _: None, ambient).tick() - ambient.monotonic_ms()
        for limit_ms in (1, 5_000, 3_600_000)
    ]
    assert pauses == [LOOK_MS_MIN, 500, LOOK_MS_MAX]
