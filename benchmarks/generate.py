"""How fast `unskew generate` makes each stream, and how near it comes to the rate it is asked for.

`python -m benchmarks.generate [lines] [trades] [posts]` starts a Kafka of its own. `made` is the
records that a second of processor time makes and hands over, the Kafka client's threads included
and the start-up not. `rate error` is how far the records written in the stream's time are from the
rate asked for, in percent; such a row needs its seconds, and a quiet machine.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO

from benchmarks.tables import MEETS, Row, Table, machine, show, verdict
from unskew.jobs.commands import generate
from unskew.jobs.generator.options import STREAMS, read_plan
from unskew.jobs.generator.outputs import open_output
from unskew.jobs.generator.progress import Progress
from unskew.jobs.generator.registry import open_stream
from unskew.jobs.generator.stream_writer import Writer
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.signals import Stop

MADE_MIN = 100_000
RATE_ERROR_MAX = 2.0
RATES = (50, 20_000)
_PARTITIONS = 4


def written(address: str, *words: str) -> tuple[int, float, float]:
    """Write a stream; its records, and the seconds that it took, of the clock and of a CPU."""
    parser = argparse.ArgumentParser()
    generate.configure(parser)
    plan = read_plan(parser.parse_args([*words, f"--bootstrap-servers={address}"]))
    output = open_output(plan.target, plan.settings.stream)
    progress = Progress(plan.settings.stream, output.name, None)
    writer = Writer(open_stream(plan.settings), output, None, progress, Stop())
    began, worked = time.monotonic(), time.process_time()
    with redirect_stdout(StringIO()):  # its summary would stand between the rows
        writer.run(paced=plan.paced)
    return output.written, time.monotonic() - began, time.process_time() - worked


def table(broker: Broker, streams: Sequence[str], records: int, seconds: int) -> Table:
    """Every stream as fast as it goes, and at each rate."""
    return Table(
        "generate: speed and rate",
        f"*made*: at least {MADE_MIN:,} records a second of one CPU, at full speed. *rate error*:"
        f" at most {RATE_ERROR_MAX} %.",
        {
            "stream": "<6", "asked": "8,", "records": "10,", "seconds": "7.2f", "cpu": "7.2f",
            "made": "9,", "rate error": "10.2f",
        },
        _rows(broker, streams, records, seconds),
    )  # fmt: skip


def _rows(broker: Broker, streams: Sequence[str], records: int, seconds: int) -> Iterator[Row]:
    for stream in streams:
        yield _row(broker, stream, None, f"--records={records}", "--fast")
        for rate in RATES:
            yield _row(broker, stream, rate, f"--rate={rate}", f"--duration={seconds}s")


def _row(broker: Broker, stream: str, rate: int | None, *words: str) -> Row:
    topic = f"{stream}-{rate or 'fast'}"
    broker.create_topics([topic], partitions=_PARTITIONS)
    count, clock, cpu = written(broker.address, stream, f"--topic={topic}", *words)
    made = round(count / cpu)
    error = None if rate is None else 100 * abs(count / clock / rate - 1)
    return {
        "stream": stream,
        "asked": rate,
        "records": count,
        "seconds": clock,
        "cpu": cpu,
        "made": made,
        "rate error": error,
        MEETS: verdict({
            "made": made >= MADE_MIN if rate is None else None,
            "rate": None if error is None else error <= RATE_ERROR_MAX,
        }),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stream", nargs="*", choices=[*STREAMS, "all"], default="all")
    parser.add_argument("--records", type=int, default=1_000_000, help="at full speed")
    parser.add_argument("--seconds", type=int, default=10, help="at each rate")
    chosen = parser.parse_args(arguments)
    names = list(STREAMS) if "all" in chosen.stream else list(dict.fromkeys(chosen.stream))
    print(f"{machine()}.\n")
    with Broker() as broker:
        show(table(broker, names, chosen.records, chosen.seconds))


if __name__ == "__main__":
    main()
