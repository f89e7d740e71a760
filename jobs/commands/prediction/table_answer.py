"""The answer of `compare --table`: files and writers of each way, and one sentence."""

import sys
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from unskew.grouping.simulation.loads import KeyBatch
from unskew.grouping.simulation.scenario import SOURCES_MAX
from unskew.jobs.commands.prediction.answer import BATCHES, list_notes
from unskew.jobs.commands.prediction.options import Question
from unskew.jobs.commands.prediction.sample import Sample
from unskew.jobs.commands.prediction.sampling import Asked
from unskew.jobs.commands.prediction.table_writers import Writers, advise, predict_writers

_PIPE_WIDTH = 120


@dataclass(frozen=True)
class TableAnswer:
    """What is shown, as text or JSON."""

    sample: Sample
    values: int
    partitions: int
    tasks: int
    batch_records: int
    predictions: tuple[Writers, ...]

    @property
    def advice(self) -> str:
        """The sentence."""
        return advise(self.predictions)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "advice": self.advice,
            "sample": {
                "of": self.sample.where,
                "records": int(self.sample.hashes.size),
                "there": self.sample.there,
                "without_key": self.sample.without_key,
            },
            "values": self.values,
            "partitions": self.partitions,
            "sources": self.tasks,
            "batch_records": self.batch_records,
            "predictions": [asdict(each) for each in self.predictions],
            "notes": list_notes(self.sample),
        }


def answer(question: Question, asked: Asked) -> TableAnswer:
    """Let each way write the sample's batches."""
    sample, partitions = asked.sample, asked.partitions
    size = min(asked.batch_records or -(-sample.hashes.size // BATCHES), sample.hashes.size)
    tasks = min(question.sources or min(partitions, SOURCES_MAX), size)
    batches = [KeyBatch.of(hashes) for hashes in sample.cut(size)]
    predictions = predict_writers(batches, partitions, tasks)
    values = KeyBatch.of(sample.hashes).distinct
    return TableAnswer(sample, values, partitions, tasks, size, predictions)


def print_answer(given: TableAnswer) -> None:
    """A table, the sentence, and what is to be known of the sample."""
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)
    sample = given.sample
    console.print(
        f"{sample.where}: {sample.hashes.size:,} of {sample.there:,} records,"
        f" {given.values:,} values; batches of {given.batch_records:,} read by {given.tasks} tasks,"
        f" {given.partitions} writers",
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("writing", "files a batch", "rows a file", "most files", "slowest/mean"):
        table.add_column(name, justify="left" if name == "writing" else "right", no_wrap=True)
    for each in given.predictions:
        table.add_row(
            each.way,
            f"{each.files:,.0f}",
            f"{each.rows_of_file:,.1f}",
            f"{each.most_files:,.0f}",
            f"{each.slowest_over_mean:.2f}",
        )
    console.print(table)
    console.print(given.advice, markup=False)
    for note in list_notes(sample):
        console.print(note, markup=False)
