import pytest

from headgate.engine import SparkSettings
from headgate.errors import Invalid
from headgate.settings.secrecy import guarded, resolved, resolved_conf, takes_secret


@pytest.mark.parametrize(
    "key",
    [
        *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.x.PASSWORD"),
        *("spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net", "spark.ssl.keyPassword"),
        *("spark.authenticate.secret", "spark.sql.catalog.c.token", "api_key", "key"),
    ],
)
def test_a_key_that_takes_a_secret_is_known_by_its_name(key: str) -> None:
    assert takes_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "spark.ssl.keyStore",
            "spark.hadoop.fs.s3a.aws.credentials.provider",
            "spark.yarn.keytab",
        ),
        *("spark.authenticate.secret.file", "spark.security.credentials.hive.enabled"),
        *("spark.kerberos.renewal.credentials", "spark.io.encryption.keySizeBits"),
        *("spark.kubernetes.driver.secrets.name", "spark.sql.shuffle.partitions", "spark.ui.port"),
    ],
)
def test_what_is_only_about_a_secret_may_be_written(key: str) -> None:
    assert guarded(key, "x") == "x"


def test_that_a_feature_is_on_is_no_secret() -> None:
    assert guarded("spark.x.token", "true") == "true"


def test_secrets_are_looked_up_at_the_moment_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = SparkSettings(
        remote="${env:REMOTE}", conf={"spark.x.password": "${env:P}", "spark.a": "b"}
    )
    monkeypatch.setenv("P", "one")
    monkeypatch.setenv("REMOTE", "sc://h/;token=x")

    assert resolved_conf(spark) == {"spark.x.password": "one", "spark.a": "b"}
    assert resolved(spark).remote == "sc://h/;token=x"
    monkeypatch.setenv("P", "two")
    assert resolved_conf(spark)["spark.x.password"] == "two"


def test_a_reference_to_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("P", raising=False)
    with pytest.raises(Invalid, match=r"\$\{env:P\}.*export P="):
        resolved_conf(SparkSettings(conf={"spark.x.password": "${env:P}"}))
