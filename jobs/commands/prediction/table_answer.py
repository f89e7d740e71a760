"""The answer of `compare --table`: files and writers of each way, and one sentence."""

from dataclasses import asdict, dataclass
from typing import Any

from unskew.grouping.simulation.batch_cost import Begun
from unskew.grouping.simulation.loads import KeyBatch
from unskew.grouping.simulation.scenario import SOURCES_MAX
from unskew.jobs.commands.prediction.answer import BATCHES, list_notes
from unskew.jobs.commands.prediction.key_sample import Sample
from unskew.jobs.commands.prediction.options import Question
from unskew.jobs.commands.prediction.sample_reader import PredictionInput
from unskew.jobs.commands.prediction.table_writers import (
    LevelOptions,
    Writers,
    advise,
    predict_writers,
)
from unskew.jobs.local.terminal_tables import make_console, print_fitting


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
        """One sentence of advice."""
        return advise(self.predictions)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain values."""
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


def answer(
    question: Question, inputs: PredictionInput, begun: Begun = lambda _: None
) -> TableAnswer:
    """Let each way write the sample's batches; `begun` is called with each."""
    sample, partitions = inputs.sample, inputs.partitions
    size = min(inputs.batch_records or -(-sample.hashes.size // BATCHES), sample.hashes.size)
    tasks = min(question.sources or min(partitions, SOURCES_MAX), size)
    batches = [KeyBatch.from_hashes(hashes) for hashes in sample.cut(size)]
    level = LevelOptions(inputs.level, sample.cut_sizes(size), inputs.file_cost)
    predictions = predict_writers(batches, partitions, tasks, begun, level)
    values = KeyBatch.from_hashes(sample.hashes).distinct
    return TableAnswer(sample, values, partitions, tasks, size, predictions)


def print_answer(shown: TableAnswer) -> None:
    """A table, the sentence, and what is to be known of the sample."""
    console = make_console()
    sample = shown.sample
    console.print(
        f"{sample.where}: {sample.hashes.size:,} of {sample.there:,} records,"
        f" {shown.values:,} values; batches of {shown.batch_records:,} read by {shown.tasks} tasks,"
        f" {shown.partitions} writers",
        markup=False,
    )
    headings = ("writing", "files a batch", "rows a file", "most files", "slowest/mean")
    rows = [
        (
            each.way,
            f"{each.files:,.0f}",
            f"{each.rows_of_file:,.1f}",
            f"{each.most_files:,.0f}",
            f"{each.slowest_over_mean:.2f}",
        )
        for each in shown.predictions
    ]
    print_fitting(console, headings, rows)
    console.print(shown.advice, markup=False)
    for note in list_notes(sample):
        console.print(note, markup=False)
