from headgate.ambient import Deadline, SystemAmbient


class ManualClock(SystemAmbient):
    now_ms = 1_000

    def monotonic_ms(self) -> int:
        return self.now_ms


def test_ids_are_128_bits_and_differ() -> None:
    ids = {SystemAmbient().new_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in ids)


def test_monotonic_time_never_runs_backwards() -> None:
    ambient = SystemAmbient()
    seen = [ambient.monotonic_ms() for _ in range(1_000)]
    assert seen == sorted(seen)


def test_sleeping_no_time_or_less_returns() -> None:
    SystemAmbient().sleep_ms(0)
    SystemAmbient().sleep_ms(-5)


def test_a_deadline_counts_down_and_stays_at_zero() -> None:
    clock = ManualClock()
    deadline = Deadline(clock, 300)
    assert (deadline.left_ms(), deadline.is_over()) == (300, False)
    clock.now_ms += 299
    assert (deadline.left_ms(), deadline.is_over()) == (1, False)
    clock.now_ms += 500
    assert (deadline.left_ms(), deadline.is_over()) == (0, True)
