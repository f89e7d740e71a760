"""What another user of the machine can see and reach of a driver's JVM."""

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from unskew.config.errors import ExternalError
from unskew.jobs.engine.launch import launch
from unskew.jobs.engine.session import choose_authentication

SECRET = 'fall\\ing "lëaves" =:#! \N{MAPLE LEAF}\N{FALLEN LEAF}'  # noqa: S105 - of this test
RPC_REQUEST, RPC_FAILURE = 3, 5

SHOW = """
import json, os, sys
from pathlib import Path
from pyspark import SparkContext
from unskew.jobs.engine.session import session
settings = json.loads(os.read(0, 65536))
with session("shown", settings) as spark:
    jvm = Path("/proc", str(SparkContext._gateway.proc.pid))
    system = spark._jvm.java.lang.System
    print(json.dumps({
        "public": (jvm / "cmdline").read_bytes().decode(),
        "environment": (jvm / "environ").read_bytes().decode(),
        "of_hadoop": spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
        "of_jvm": system.getProperty("my.password"),
        "from_defaults": system.getProperty("from.defaults"),
        "memory": spark._jvm.java.lang.Runtime.getRuntime().maxMemory(),
        "mode": Path(settings["spark.local.dir"]).stat().st_mode & 0o777,
        "files": os.listdir(os.environ["TMPDIR"]),
    }))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_secret_of_spark_is_on_no_command_line_and_in_no_environment(tmp_path: Path) -> None:
    conf, temporary = tmp_path / "conf", tmp_path / "a tmp"
    conf.mkdir()
    temporary.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.driver.defaultJavaOptions -Dfrom.defaults=yes")
    quoted = SECRET.replace("\\", "\\\\").replace('"', '\\"')
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "600m",
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.driver.extraJavaOptions": f'-Dmy.password="{quoted}"',
        "spark.local.dir": str(tmp_path / "spark-files"),
    }
    variables = {"SPARK_CONF_DIR": str(conf), "TMPDIR": str(temporary)}
    child = subprocess.run(
        [sys.executable, "-c", SHOW],
        input=json.dumps(settings).encode(),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        check=True,
    )
    shown = json.loads(child.stdout)
    assert shown["of_hadoop"] == shown["of_jvm"] == SECRET
    assert (shown["from_defaults"], shown["memory"]) == ("yes", 600 << 20)
    for seen in (shown["public"], shown["environment"]):
        assert "fall" not in seen
    assert shown["mode"] == 0o700
    assert not [name for name in shown["files"] if name.startswith("unskew-")]


@pytest.mark.spark
def test_no_setting_is_on_the_command_line(spark: SparkSession) -> None:
    words = Path(f"/proc/{SparkContext._gateway.proc.pid}/cmdline").read_bytes().split(b"\0")
    named = [word.partition(b"=")[0] for word in words if word.startswith(b"spark.")]
    assert named == [b"spark.driver.extraJavaOptions"]
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.spark
def test_the_drivers_port_deserialises_nothing_of_a_stranger(spark: SparkSession) -> None:
    port = int(spark.sparkContext.getConf().get("spark.driver.port", "0"))
    body = b"\xac\xed\x00\x05sr\x00\x04Evil"
    request = struct.pack(">bqi", RPC_REQUEST, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(request)) + request)
        answer = stranger.recv(65536)
    assert answer[8] == RPC_FAILURE
    assert b"SaslMessage" in answer


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ('-Da="b', "a quotation mark is never closed"),
        ("-Xmx2g", "-Xmx is not allowed; write spark.driver.memory"),
    ],
)
def test_options_that_no_jvm_could_start_with_are_a_line(
    options: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(ExternalError, match=f"spark.spark.driver.extraJavaOptions: {problem}"):
        launch({"spark.driver.extraJavaOptions": options})


@pytest.mark.parametrize(
    ("settings", "authenticated", "encrypted"),
    [
        ({"spark.master": "local[2]"}, True, False),
        ({"spark.master": "k8s://https://10.0.0.1"}, True, True),
        # Spark makes no secret for these, and would refuse to start.
        ({"spark.master": "spark://10.0.0.1:7077"}, False, False),
        ({"spark.master": "local-cluster[1,1,1024]"}, False, False),
        ({"spark.master": "yarn"}, False, False),
        ({"spark.master": "spark://h:1", "spark.authenticate.secret": "s"}, True, False),
    ],
)
def test_spark_authenticates_where_there_is_a_secret(
    settings: dict[str, str], authenticated: bool, encrypted: bool
) -> None:
    chosen = choose_authentication(settings)
    assert ("spark.authenticate" in chosen, "spark.network.crypto.enabled" in chosen) == (
        authenticated,
        encrypted,
    )
