import pytest

from headgate.engine.jsonpath import keys_of
from headgate.errors import Invalid


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("$.at", ("at",)),
        ("$.meta.created_at", ("meta", "created_at")),
        ("$['created at'].ms", ("created at", "ms")),
        ("$.größe", ("größe",)),
    ],
)
def test_a_path_names_its_keys(path: str, keys: tuple[str, ...]) -> None:
    assert keys_of(path) == keys


@pytest.mark.parametrize(
    "path", ["", "$", "at", ".at", "$.a[0]", "$.*", "$['*']", "$..at", "$.a b", "$['a\"b']"]
)
def test_what_leads_to_more_or_less_than_one_value_is_invalid(path: str) -> None:
    with pytest.raises(Invalid, match=r"\$\.at"):
        keys_of(path)
