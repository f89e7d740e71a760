"""The outcome of a stage: from wherever its world writes to."""

from dataclasses import replace

from tests.storm.harness.stage import Stage
from tests.storm.oracle.expected import DeadLetters, Outcome, Totals, count_rows
from tests.storm.oracle.outcome import (
    differences,
    file_letters,
    file_rows,
    messages_of,
    plain_rows,
    table_rows,
    topic_letters,
    topic_rows,
    totals_of,
)
from tests.storm.oracle.tables import lake_rows


def outcome_of(stage: Stage) -> Outcome:
    """What the stage's job has written so far."""
    return Outcome(_totals(stage), _dead_letters(stage))


def compared(stage: Stage) -> list[str]:
    """What is wrong with the outcome; nothing if all is exact."""
    once = stage.world.dead_letters == "files"
    want, got = stage.want, outcome_of(stage)
    wrong = differences(want, got, letters_once=once)
    if stage.world.second_sink:
        also = replace(got, totals=totals_of(file_rows(stage.also), once=True))
        second = differences(want, also, letters_once=once)
        wrong += [f"second sink: {line}" for line in second if line not in wrong]
    return wrong


def _totals(stage: Stage) -> Totals:
    if stage.world.sink == "files":
        return totals_of(file_rows(stage.results), once=True)
    if stage.world.sink == "table":
        rows = lake_rows(stage.results)
        return totals_of(rows, once=True) if stage.world.merges else count_rows(plain_rows(rows))
    if stage.world.sink == "postgres":
        with stage.services.postgres.connect() as connection:
            return totals_of(table_rows(connection, stage.table), once=True)
    messages = messages_of(stage.services.broker.address, stage.topic("out"))
    return totals_of(topic_rows(messages), once=False)


def _dead_letters(stage: Stage) -> DeadLetters:
    if stage.world.dead_letters == "files":
        return file_letters(stage.folder / "dead")
    return topic_letters(messages_of(stage.services.broker.address, stage.topic("dead")))
