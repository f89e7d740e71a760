"""Traces: the streams that groupings are compared on, made from a seed or read from a file.

A trace is a number of records, each with a key, and some with a cost of their own (relative to
one). Record i is a function of the seed and i alone, so a trace can be made in chunks of any size,
in bounded memory. Keys are numbers 0, 1, 2, ... (0 the most frequent, where the law is Zipf's)
sent through a bijection of 64 bits that depends on the seed: distinct keys stay distinct.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import SEED_MAX, Float64s, Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import salts
from unskew.grouping.simulation.specs import SpecError, check_name, check_options, parse_spec
from unskew.grouping.simulation.streams import formats
from unskew.grouping.simulation.streams.draws import (
    build_alias,
    draw,
    draw_tail,
    exact_counts,
    hash_numbers,
    integral,
    permute,
    replace_numbers,
    uniform,
)
from unskew.grouping.simulation.streams.key_files import read_keys
from unskew.grouping.simulation.streams.published import PUBLISHED
from unskew.grouping.simulation.streams.trace_params import (
    CountryParams,
    FlashParams,
    HotKeyParams,
    PosgCostsParams,
    TraceParams,
    TradesLikeParams,
    TweetsLikeParams,
    UniformParams,
    ZipfDriftParams,
    ZipfParams,
    ZipfTurnoverParams,
)

CHUNK_RECORDS = 1 << 18
RANKS_IN_TABLE = 1 << 20


@dataclass(frozen=True)
class TraceChunk:
    """Some records in order: their keys and, in some traces, their costs (one is usual)."""

    keys: UInt64s
    costs: Float64s | None = None


class Trace(ABC):
    """A finite stream of records."""

    name: ClassVar[str]
    records: int
    records_per_second: float
    unit_cost_us: float | None = None
    """Microseconds of a record of cost one, in traces that have costs of their own."""

    @abstractmethod
    def chunks(self) -> Iterator[TraceChunk]:
        """The records from the first to the last."""


class SyntheticTrace(Trace):
    """A trace made from a seed; `_numbers` gives the keys before they are hashed."""

    Params: ClassVar[type[TraceParams]]

    def __init__(self, params: TraceParams) -> None:
        self.records = params.records
        self.records_per_second = params.records_per_second
        # Independent draws for: hashes, keys, what a trace decides besides, rare keys.
        self._salts = salts(params.seed, 4)
        self._seed = params.seed
        self._costs: Float64s | None = None

    @abstractmethod
    def _numbers(self, start: int, stop: int) -> Int64s:
        """The key numbers of the records from `start` to `stop`."""

    def chunks(self) -> Iterator[TraceChunk]:
        for start in range(0, self.records, CHUNK_RECORDS):
            numbers = self._numbers(start, min(start + CHUNK_RECORDS, self.records))
            keys = np.empty(numbers.size, np.uint64)
            hash_numbers(numbers, self._salts[0], keys)
            yield TraceChunk(keys, None if self._costs is None else self._costs[numbers])

    def _generator(self, *path: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *path])


class Zipf(SyntheticTrace):
    """Zipf's law: by Walker's alias table, one draw and one look-up a record.

    Ranks beyond the table are one entry of it, and drawn within it from the continuous law, which
    differs from Zipf's there by less than a part in 10^12.
    """

    name = "zipf"
    Params = ZipfParams

    def __init__(self, params: ZipfParams) -> None:
        super().__init__(params)
        self._keys, self._z = params.keys, params.z
        self._ranks = min(params.keys, RANKS_IN_TABLE)
        weights = np.arange(1, self._ranks + 1, dtype=np.float64) ** -params.z
        if params.keys > self._ranks:
            ends = np.array([self._ranks, params.keys]) + 0.5
            weights = np.append(weights, integral(ends, params.z))
        self._upto: Int64s | None = None
        if params.counts == "exact":
            self._upto = exact_counts(weights, params.records)
            return
        self._thresholds = np.empty(weights.size, np.uint64)
        self._aliases = np.empty(weights.size, np.int32)
        build_alias(weights * (weights.size / weights.sum()), self._thresholds, self._aliases)

    def _numbers(self, start: int, stop: int) -> Int64s:
        out = np.empty(stop - start, np.int64)
        if self._upto is not None:
            permute(start, self.records, self._salts[1], out)
            out = np.searchsorted(self._upto, out, side="right").astype(np.int64)
        else:
            draw(start, self._salts[1], self._thresholds, self._aliases, out)
        if self._keys > self._ranks:
            draw_tail(start, self._salts[3], self._ranks, self._keys, self._z, out)
        return out


class ZipfTurnover(Zipf):
    """Zipf's law, where ranks get new keys, each rank at times of its own."""

    name = "zipf-turnover"
    Params = ZipfTurnoverParams

    def __init__(self, params: ZipfTurnoverParams) -> None:
        super().__init__(params)
        self._turnover = params.turnover
        self._life = params.life_records

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = super()._numbers(start, stop)
        if self._turnover > 0:
            rule = self._keys, self._turnover, self._life
            replace_numbers(start, self._salts[2], *rule, numbers)
        return numbers


class HotKey(Zipf):
    """One key has a fixed part of the records, the others follow Zipf's law."""

    name = "hot-key"
    Params = HotKeyParams

    def __init__(self, params: HotKeyParams) -> None:
        super().__init__(params)
        self._share = params.r / 100

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = 1 + super()._numbers(start, stop)
        numbers[uniform(start, stop, self._salts[2]) < self._share] = 0
        return numbers


class ZipfDrift(Zipf):
    """Zipf's law with a ranking that changes and comes back."""

    name = "zipf-drift"
    Params = ZipfDriftParams

    def __init__(self, params: ZipfDriftParams) -> None:
        super().__init__(params)
        self._run = -(-params.records // params.runs)
        self._drift_from = round(self._run * (1 - params.drift_share))
        self._random = params.ranking == "random"

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = super()._numbers(start, stop)
        runs, offset = np.divmod(np.arange(start, stop), self._run)
        for run in range(int(runs[0]), int(runs[-1]) + 1):
            drifted = (runs == run) & (offset >= self._drift_from)
            if drifted.any():
                numbers[drifted] = self._ranking(run)[numbers[drifted]]
        return numbers

    def _ranking(self, run: int) -> NDArray[np.int64]:
        if self._random:
            return self._generator(run).permutation(self._keys)
        return np.arange(self._keys)[::-1]


class Flash(Zipf):
    """A stream into which a hot key bursts."""

    name = "flash"
    Params = FlashParams

    def __init__(self, params: FlashParams) -> None:
        super().__init__(params)
        self._share = params.share
        self._begin = round(params.begin * params.records)
        self._end = round(params.end * params.records)

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = super()._numbers(start, stop)
        record = np.arange(start, stop)
        hot = (record >= self._begin) & (record < self._end)
        hot &= uniform(start, stop, self._salts[2]) < self._share
        numbers[hot] = self._keys
        return numbers


class Country(SyntheticTrace):
    """One key has a fixed part of the records, the others share the rest evenly."""

    name = "country"
    Params = CountryParams

    def __init__(self, params: CountryParams) -> None:
        super().__init__(params)
        self._share = params.r / 100
        self._keys = params.keys

    def _numbers(self, start: int, stop: int) -> Int64s:
        others = self._keys - 1
        numbers = 1 + (uniform(start, stop, self._salts[1]) * others).astype(np.int64)
        hot = uniform(start, stop, self._salts[2]) < self._share
        numbers[hot | (others == 0)] = 0
        return numbers


class HalfSkew(Country):
    """The first half has no skew, the second has country's."""

    name = "half-skew"

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = super()._numbers(start, stop)
        even = (uniform(start, stop, self._salts[1]) * self._keys).astype(np.int64)
        return np.where(np.arange(start, stop) < self.records // 2, even, numbers)


class Uniform(SyntheticTrace):
    """All keys are equally frequent."""

    name = "uniform"
    Params = UniformParams

    def __init__(self, params: UniformParams) -> None:
        super().__init__(params)
        self._keys = params.keys

    def _numbers(self, start: int, stop: int) -> Int64s:
        return (uniform(start, stop, self._salts[1]) * self._keys).astype(np.int64)


class PosgCosts(Zipf):
    """Keys of Zipf's law with costs given to keys at random."""

    name = "posg-costs"
    Params = PosgCostsParams
    unit_cost_us = 1000.0

    def __init__(self, params: PosgCostsParams) -> None:
        super().__init__(params)
        steps = np.linspace(params.cost_min, params.cost_max, params.costs)
        self._costs = self._generator().permutation(np.resize(steps, params.keys))


class TweetsLike(Zipf):
    """Entities of three classes: politicians, media and others."""

    name = "tweets-like"
    Params = TweetsLikeParams
    unit_cost_us = 1000.0

    def __init__(self, params: TweetsLikeParams) -> None:
        super().__init__(params)
        draws = self._generator().random(params.keys)
        media = (draws >= params.politicians) & (draws < params.politicians + params.media)
        self._costs = np.where(draws < params.politicians, 5.0, np.where(media, 25.0, 1.0))
        self._costs[0] = 5.0


class TradesLike(Zipf):
    """Symbols whose first ranks go to other symbols from phase to phase."""

    name = "trades-like"
    Params = TradesLikeParams

    def __init__(self, params: TradesLikeParams) -> None:
        super().__init__(params)
        self._phase = -(-params.records // params.phases)

    def _numbers(self, start: int, stop: int) -> Int64s:
        numbers = super()._numbers(start, stop)
        phases = np.arange(start, stop) // self._phase
        for phase in range(int(phases[0]), int(phases[-1]) + 1):
            here = phases == phase
            numbers[here] = self._generator(phase).permutation(self._keys)[numbers[here]]
        return numbers


class FileTrace(Trace):
    """`file:PATH`: one key a line; or another of the formats of files."""

    name = "file"
    records_per_second = 10_000.0

    def __init__(self, path: str, reading: formats.Reading = formats.KEY_A_LINE) -> None:
        self._path, self._reading = Path(path), reading
        try:
            if self._path.exists() and not self._path.is_file():
                raise SpecError(f"trace: {path}: not a regular file")
            self.records = sum(keys.size for keys in self._read())
        except FileNotFoundError as error:
            raise SpecError(f"trace: {path}: no such file") from error
        except OSError as error:
            raise SpecError(f"trace: {path}: {error.strerror or error}") from error
        if self.records == 0:
            raise SpecError(f"trace: {path}: no keys in it, {reading.expected} is expected")

    def chunks(self) -> Iterator[TraceChunk]:
        left = self.records
        for keys in self._read():
            # What was written to the file since it was counted is not of this trace.
            yield TraceChunk(keys[:left])
            left -= min(left, keys.size)
        if left:
            raise GroupingError(f"trace: {self._path}: has become shorter while it was read")

    def _read(self) -> Iterator[UInt64s]:
        hash_block, titled, _ = self._reading
        return read_keys(self._path, hash_block=hash_block, skip_first=titled)


_COMPARED = Zipf, ZipfDrift, Flash, HalfSkew, Country, Uniform, PosgCosts, TweetsLike, TradesLike
TRACES: dict[str, type[SyntheticTrace]] = {trace.name: trace for trace in _COMPARED}
"""The traces that every grouping is compared on."""
FURTHER: dict[str, type[SyntheticTrace]] = {trace.name: trace for trace in (ZipfTurnover, HotKey)}
"""Traces for single questions."""


TRACE_NAMES = [*TRACES, *FURTHER, *PUBLISHED, FileTrace.name, *formats.FORMATS]


def open_trace(spec: str, later: int = 0) -> Trace:
    """The trace of a spec such as `zipf:z=1.4,keys=10000` or `file:keys.txt`.

    `later` is added to the seed of a trace that has one: another stream of the same distribution.
    """
    name, _, rest = spec.partition(":")
    name = name.strip()
    if name == FileTrace.name:
        if not rest:
            raise SpecError("trace: file: a path is missing, file:PATH")
        return FileTrace(rest)
    check_name("trace", name, TRACE_NAMES)
    if name in formats.FORMATS:
        options = parse_spec("trace", spec)[1]
        return _open_file(check_options(f"trace {name}", formats.FORMATS[name], options))
    trace_class, params = read_synthetic_trace(spec)
    seed = (params.seed + later) % (SEED_MAX + 1)
    return trace_class(params.model_copy(update={"seed": seed}))


def read_synthetic_trace(spec: str) -> tuple[type[SyntheticTrace], TraceParams]:
    """Find the class of a trace that is made from a seed, and check its options."""
    synthetic: dict[str, type[SyntheticTrace]] = {**TRACES, **FURTHER}
    synthetic.update(dict.fromkeys(PUBLISHED, ZipfTurnover))
    check_name("trace", spec.partition(":")[0].strip(), synthetic)
    name, options = parse_spec("trace", spec)
    params: type[TraceParams] = PUBLISHED.get(name) or synthetic[name].Params
    return synthetic[name], check_options(f"trace {name}", params, options)


def _open_file(params: formats.DumpParams) -> FileTrace:
    try:
        reading = formats.reading_of(params)
    except OSError as error:
        raise SpecError(f"trace: {params.path}: {error.strerror or error}") from error
    return FileTrace(params.path, reading)
