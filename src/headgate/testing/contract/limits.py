"""Limits: S7, names and bodies that must come back, and what is refused."""

import json
import unicodedata
from collections.abc import Callable

import pytest

from headgate.errors import Invalid
from headgate.store import Document, DocumentStore, JsonObject, Version
from headgate.store.codec import BODY_BYTES_MAX
from headgate.store.names import KEY_BYTES_MAX, PART_BYTES_MAX, key, parts
from headgate.testing.contract.base import LONG_MS, ContractBase, numbered, present, sized


class Limits(ContractBase):
    def test_g6_g10_different_names_are_different_documents(self, store: DocumentStore) -> None:
        names = [
            *(
                "a:b",
                "a b",
                "a_b",
                "a.b",
                "a+b",
                "a%b",
                "A:B",
                "a b ",
                " a b",
                "a\\b",
                "a*b",
                "a?b",
            ),
            *(".", "..", "...", ".a", "a.", "~", "-", "!", "zookeeper", "a.json", "con", "_doc"),
            *("Straße", "STRASSE", "日本語", "дом", "😀", "\u200b", "\ue000", "\U0010fffd", "#"),
            *("\0", "\x01", "\x7f", "a\nb", "a/b", "%2F", "%2f"),
            unicodedata.normalize("NFC", "é"),
            unicodedata.normalize("NFD", "é"),
        ]
        for n, name in enumerate(names):
            store.create(key("names", name), numbered(n))
        for n, name in enumerate(names):
            assert present(store.get(key("names", name))).body == numbered(n), name
        found = [parts(d.key)[1] for d in store.list("names").documents]
        assert found == sorted(names)

    def test_g6_bodies_come_back_as_they_were(self, store: DocumentStore) -> None:
        body: JsonObject = {
            "format": 1,
            "text": '日本語 дом 😀 \u2028 \0 \x1f " \\ / </script>',
            "numbers": [0, -1, 2**53 + 1, 2**63, -(2**70), 1.5, -0.0, 1e300, 5e-324, 0.1],
            "nothing": None,
            "truth": [True, False],
            "deep": {"": {"a.b": [[[]], {}]}, "_id": "x", "$ref": 1},
        }
        store.create("doc", body)
        found = present(store.get("doc")).body
        assert json.dumps(found, sort_keys=True) == json.dumps(body, sort_keys=True)
        assert store.list().documents[0].body == body

    def test_s7_a_body_may_have_a_million_bytes_and_no_more(self, store: DocumentStore) -> None:
        fits = sized(BODY_BYTES_MAX)
        version = store.create("doc", fits, timeout_ms=LONG_MS)
        assert present(store.get("doc", timeout_ms=LONG_MS)).body == fits
        with pytest.raises(Invalid, match="1,000,000"):
            store.replace("doc", sized(BODY_BYTES_MAX + 1), version)
        with pytest.raises(Invalid, match="1,000,000"):
            store.create("other", sized(BODY_BYTES_MAX + 1))
        assert present(store.get("doc", timeout_ms=LONG_MS)).version == version
        assert store.get("other") is None

    @pytest.mark.parametrize(
        "body",
        [
            *({}, {"format": 0}, {"format": "1"}, {"format": True}, {"format": 1, "x": {1, 2}}),
            *({"format": 1, "x": float("nan")}, {"format": 1, "x": "\ud800"}),
            *({"format": 1, 5: 6}, {"format": 1, "x": (1, 2)}),
        ],
        ids=ascii,
    )
    def test_s7_what_is_no_body_is_refused(self, store: DocumentStore, body: JsonObject) -> None:
        with pytest.raises(Invalid):
            store.create("doc", body)
        version = store.create("doc", numbered(1))
        with pytest.raises(Invalid):
            store.replace("doc", body, version)
        assert present(store.get("doc")) == Document("doc", numbered(1), version)

    def test_s7_the_longest_names_fit(self, store: DocumentStore) -> None:
        longest = [
            "x" * PART_BYTES_MAX,
            "X" * PART_BYTES_MAX,
            "ж" * (PART_BYTES_MAX // 2),
            "/".join(["y" * 199, "z" * 200]),
            "/".join(["d"] * (KEY_BYTES_MAX // 2)),
        ]
        for n, name in enumerate(longest):
            store.create(name, numbered(n))
        for n, name in enumerate(longest):
            assert present(store.get(name)).body == numbered(n)
        assert [d.key for d in store.list().documents] == sorted(longest, key=parts)

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "a%",
            "%41",
            "\ud800",
            "x" * 256,
            "x/" * 200 + "x",
            "n" * 500,
        ],
        ids=lambda name: ascii(name[:12]),
    )
    def test_s7_what_is_no_key_is_refused(self, store: DocumentStore, name: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(name),
            lambda: store.create(name, numbered(1)),
            lambda: store.replace(name, numbered(1), Version("v")),
            lambda: store.delete(name, Version("v")),
        ]
        if name:  # an empty prefix is everything
            calls += [lambda: store.list(name), lambda: store.list(after=name)]
            calls += [lambda: store.wait(name, None, timeout_ms=0)]
        for refused in calls:
            with pytest.raises(Invalid):
                refused()
        assert store.list().documents == ()
