"""The answer to a question: predictions of every way, the advice, the keys and the scaling."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from unskew.config.models.grouping import splits_keys
from unskew.grouping.simulation.batch_cost import Begun, Machine, Prediction, predict
from unskew.grouping.simulation.key_profile import KeyProfile, profile_keys
from unskew.grouping.simulation.loads import HASHED, WAYS, Work
from unskew.grouping.simulation.scaling import Step, find_knee, scale
from unskew.grouping.simulation.scenario import SOURCES_MAX
from unskew.jobs.commands.prediction.advice import advise, choose, find_today
from unskew.jobs.commands.prediction.key_sample import Sample
from unskew.jobs.commands.prediction.options import Question
from unskew.jobs.commands.prediction.sample_reader import PredictionInput

BATCHES = 4
"""Into how many batches the sample is cut if no size of a batch is given."""


@dataclass(frozen=True)
class Answer:
    """What `compare` shows, as text, JSON or a page."""

    sample: Sample
    partitions: int
    batch_records: int
    work: Work
    today: str
    constants_of: str
    predictions: tuple[Prediction, ...]
    """The fastest first."""
    profile: KeyProfile
    key_names: tuple[str, ...]
    """The heaviest keys as shown: their hashes, or with --show-keys themselves."""
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def chosen(self) -> Prediction:
        """The recommended prediction."""
        return choose(self.predictions)

    @property
    def advice(self) -> str:
        """One sentence of advice."""
        return advise(self.predictions, self.work, self.today)

    @property
    def knee(self) -> int | None:
        """The first number of partitions which doubling hardly improves on, if there is one."""
        return find_knee(self.steps, self.chosen.way)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {
            "advice": self.advice,
            "take": self.chosen.way,
            "today": self.today,
            "sample": {
                "of": self.sample.where,
                "records": int(self.sample.hashes.size),
                "there": self.sample.there,
                "without_key": self.sample.without_key,
            },
            "partitions": self.partitions,
            "batch_records": self.batch_records,
            "work": asdict(self.work),
            "constants_of": self.constants_of,
            "predictions": [_to_row(each) for each in self.predictions],
            "keys": self._list_keys(),
            "scaling": {"knee": self.knee, "steps": [asdict(step) for step in self.steps]},
            "notes": list(self.notes),
        }

    def _list_keys(self) -> Mapping[str, Any]:
        heaviest = zip(self.key_names, self.profile.heaviest, strict=True)
        return {
            "keys": self.profile.keys,
            "head_keys": self.profile.head_keys,
            "head_share": self.profile.head_share,
            "drift": self.profile.drift,
            "heaviest": [
                {"key": name, "records": key.records, "share": key.share} for name, key in heaviest
            ],
        }


def _to_row(prediction: Prediction) -> dict[str, Any]:
    return {
        "way": prediction.way,
        "seconds": prediction.seconds,
        "records_per_second": prediction.records_per_second,
        "max_over_mean": prediction.max_over_mean,
        "pairs": prediction.pairs,
        "parts": asdict(prediction.parts),
    }


def answer(question: Question, inputs: PredictionInput, begun: Begun = lambda _: None) -> Answer:
    """Predict every way of the sample's batches; `begun` is called with each."""
    sample, partitions = inputs.sample, inputs.partitions
    work = question.work or sample.work
    assert work is not None
    size = min(inputs.batch_records or -(-sample.hashes.size // BATCHES), sample.hashes.size)
    batches = sample.cut(size)
    slots = question.slots or min(inputs.slots or partitions, partitions)
    machine = Machine(slots, question.constants)
    sources = question.sources or min(slots, SOURCES_MAX)
    ways = [way for way in WAYS if inputs.splits or not splits_keys(way)]
    predictions = predict(ways, batches, partitions, sources, work, machine, begun)
    predictions.sort(key=lambda each: each.seconds)
    chosen = choose(predictions).way
    profile = profile_keys(sample.in_time(), partitions)
    today = find_today(predictions, inputs.today).way
    compared = list(dict.fromkeys((HASHED, today, chosen)))
    return Answer(
        sample,
        partitions,
        size,
        work,
        inputs.today,
        _describe_constants(question),
        tuple(predictions),
        profile,
        _name_keys(sample, profile, show=question.show_keys),
        tuple(scale(compared, batches[:2], partitions, work, question.constants, begun)),
        (*list_notes(sample), *_describe_profile(profile), *_describe_ways(inputs)),
    )


def _describe_constants(question: Question) -> str:
    calibration = question.calibration
    if calibration is None:
        return "a machine of two cores that the benchmarks ran on; unskew calibrate measures yours"
    return f"this machine, measured {calibration.measured} UTC on {calibration.cores} cores"


def _name_keys(sample: Sample, profile: KeyProfile, *, show: bool) -> tuple[str, ...]:
    if not show or sample.text_of is None:
        return tuple(f"{key.hash:016x}" for key in profile.heaviest)
    numbers = sample.order()
    return tuple(sample.text_of(int(numbers[key.first])) for key in profile.heaviest)


def list_notes(sample: Sample) -> list[str]:
    """Notes on the sample: its own, and the records that are left out."""
    notes = list(sample.notes)
    if sample.without_key:
        notes.append(
            f"{sample.without_key:,} records have no key or cannot be decoded, and are left out;"
            " a job makes dead letters of them."
        )
    return notes


def _describe_profile(profile: KeyProfile) -> list[str]:
    notes = []
    if profile.keys == 1:
        notes.append(
            "All records have the same key: by its hash, one partition does all of the work."
        )
    if profile.keys == profile.records:
        notes.append(
            "Every record has a key of its own: there is no skew, and nothing is combined."
        )
    return notes


def _describe_ways(inputs: PredictionInput) -> list[str]:
    if inputs.splits:
        return []
    return [
        "Its operator forbids that a key is split, so only ways that keep keys whole are shown."
    ]
