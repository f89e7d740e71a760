"""For each check of compose_checks.py edits of the files that it must reject."""

from collections.abc import Callable
from pathlib import Path

from tests.support.deploy.compose_checks import (
    Compose,
    brokers_are_the_broker,
    commands_are_understood,
    failures_are_scraped,
    grafana_is_provisioned,
    health_orders_the_start,
    jobs_lint_in_their_environment,
    mounts_are_there,
    ports_are_listened_on,
    secrets_are_asked_for,
    services_are_confined,
    targets_are_services,
    texts_of_the_checkout,
    the_image_is_built_once,
    topics_are_those_of_the_jobs,
)

_STARTED = "kafka: {condition: service_started}"
_AFTER_ALERTMANAGER = "    depends_on:\n      alertmanager: {condition: service_healthy}\n"
BROKEN: list[tuple[Callable[[Compose], list[str]], str, str, str]] = [
    (commands_are_understood, "compose", "[run, word_count, --log, json,", "[run, --log, jsn,"),
    (commands_are_understood, "compose", "[generate, lines,", "[generate, lines, --rats, '1',"),
    (jobs_lint_in_their_environment, "compose", 'METRICS_PORT: "9095"', "METRICS_PORT: http"),
    (jobs_lint_in_their_environment, "compose", "SPARK_MASTER:", "SPARK_MASTERS:"),
    (brokers_are_the_broker, "compose", "INSIDE://kafka:29092", "INSIDE://kafka:29093"),
    (topics_are_those_of_the_jobs, "compose", "word_count, vwap, hashtags,", "word_count, vwap,"),
    (topics_are_those_of_the_jobs, "compose", "trades, --rate", "trades, --topic, deals, --rate"),
    (ports_are_listened_on, "compose", "127.0.0.1:9101:9095", "127.0.0.1:9101:9096"),
    (ports_are_listened_on, "compose", "127.0.0.1:9101:9095", "9101:9095"),
    (ports_are_listened_on, "compose", "127.0.0.1:9102:9095", "127.0.0.1:9101:9095"),
    (ports_are_listened_on, "dockerfile", "EXPOSE 9095", "EXPOSE 8080"),
    (mounts_are_there, "compose", "./deploy/compose/alertmanager.yml:", "./deploy/alerts.yml:"),
    (mounts_are_there, "compose", "vwap:/var/lib/unskew", "word-count:/var/lib/unskew"),
    (mounts_are_there, "compose", "vwap:/var/lib/unskew", "vwap:/var/lib/other"),
    (services_are_confined, "compose", "cap_drop: [ALL]", "cap_drop: [NET_RAW]"),
    (services_are_confined, "compose", 'user: "65534:65534"', "user: root"),
    (services_are_confined, "compose", "image: unskew:0.1.0", "image: unskew:0.0.9"),
    (services_are_confined, "compose", "prom/prometheus:v3.5.0", "prom/prometheus:latest"),
    (services_are_confined, "compose", "    mem_limit: 1g\n", ""),
    (health_orders_the_start, "compose", "127.0.0.1:9093/-/healthy", "127.0.0.1:9094/-/healthy"),
    (health_orders_the_start, "compose", "kafka: {condition: service_healthy}", _STARTED),
    (health_orders_the_start, "compose", _AFTER_ALERTMANAGER, ""),
    (targets_are_services, "prometheus", "vwap:9095", "vwap:9096"),
    (targets_are_services, "prometheus", ", hashtags:9095", ""),
    (targets_are_services, "prometheus", "/etc/prometheus/rules/*.yml", "/etc/prometheus/*.rules"),
    (failures_are_scraped, "compose", ', --set, "metrics.hold_after_failure=60 s"]', "]"),
    (failures_are_scraped, "compose", "hold_after_failure=60 s", "hold_after_failure=10 s"),
    (failures_are_scraped, "prometheus", "scrape_interval: 5s", "scrape_interval: 1m"),
    (grafana_is_provisioned, "datasource", "http://prometheus:9090", "http://127.0.0.1:9090"),
    (grafana_is_provisioned, "provider", "/etc/grafana/dashboards", "/etc/dashboards"),
    (grafana_is_provisioned, "compose", "unskew-overview.json", "overview.json"),
    (grafana_is_provisioned, "compose", 'ANONYMOUS_ENABLED: "false"', 'ANONYMOUS_ENABLED: "true"'),
    (the_image_is_built_once, "compose", "    build:\n      context: .\n", "    x-build:\n"),
    (secrets_are_asked_for, "compose", "${GRAFANA_ADMIN_PASSWORD:?", "${GRAFANA_ADMIN_PASSWORD:-"),
    (secrets_are_asked_for, "example", "GRAFANA_ADMIN_PASSWORD=", "GRAFANA_ADMIN_PASSWORD=admin"),
    (secrets_are_asked_for, "example", "GRAFANA_ADMIN_USER=admin", "GRAFANA_USER=admin"),
]  # fmt: skip


def broken(which: str, old: str, new: str, folder: Path) -> Compose:
    """The files with one edit."""
    texts = texts_of_the_checkout()
    assert old in texts[which], f"{which} has no {old!r} any more"
    return Compose.read(texts | {which: texts[which].replace(old, new)}, folder)
