"""How an inspection shows itself: tables, a plot."""

import sys

from rich import box
from rich.console import Console
from rich.table import Table

from unskew.jobs.observe.inspection import Inspection

_PIPE_WIDTH = 250
_BAR = 30


def print_tables(found: Inspection) -> None:
    """Batches, partitions, hot keys and the merge, a table each."""
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    data = found.data()
    journal = data["journal"]
    console.print(
        f"{found.checkpoint}: {found.grouping or 'no routing state'};"
        f" {data['records']:,} records in {len(data['batches'])} batches,"
        f" max/mean {data['max_over_mean']:.3f};"
        f" journal {journal['bytes']:,} bytes in {journal['batches']} batches,"
        f" routing state {journal['routing_state_bytes']:,} bytes",
        markup=False,
        highlight=False,
    )
    _print_batches(console, data["batches"])
    _print_partitions(console, data["partitions"])
    if data["hot_keys"]:
        table = _table("hot key", "records", "share")
        for key in data["hot_keys"]:
            table.add_row(key["name"] or key["hash"], f"{key['records']:,}", f"{key['share']:.2%}")
        console.print(table, markup=False)
    if data["merge"]:
        table = _table("merge partition", "rows", "bytes")
        for one in data["merge"]:
            rows = "no snapshot yet" if one["rows"] is None else f"{one['rows']:,}"
            table.add_row(str(one["partition"]), rows, f"{one['bytes']:,}")
        console.print(table)


def _print_batches(console: Console, batches: list[dict[str, object]]) -> None:
    table = _table(
        "batch", "records", "max/mean", "busy max/mean", "slowest", "busy s", "replication",
        "routing s", "keys", "bytes", "late", "dead letters",
    )  # fmt: skip
    for one in batches:
        table.add_row(
            str(one["batch"]),
            f"{one['records']:,}",
            f"{one['max_over_mean']:.3f}",
            f"{one['busy_max_over_mean']:.3f}",
            f"p{one['slowest_partition']}",
            f"{one['busy_seconds']:.3f}",
            f"{one['replication']:.3f}",
            f"{one['routing_seconds']:.3f}",
            f"{one['state_keys']:,}",
            f"{one['state_bytes']:,}",
            "-" if one["late_records"] is None else f"{one['late_records']:,}",
            _refused(one),
        )
    console.print(table)


def _refused(one: dict[str, object]) -> str:
    letters = one["dead_letters"]
    assert isinstance(letters, dict)
    text = ", ".join(f"{reason} {count:,}" for reason, count in sorted(letters.items()))
    return text if one["dead_letters_published"] else f"{text} (not sent yet)"


def _print_partitions(console: Console, partitions: list[dict[str, object]]) -> None:
    table = _table("partition", "records", "", "busy s", "latency p99 s", "keys", "bytes")
    table.columns[2].justify = "left"
    most = max((int(str(one["records"])) for one in partitions), default=0)
    for one in partitions:
        last, latency = one["last_batch"], one["latency_p99_seconds"]
        assert isinstance(last, dict)
        width = round(_BAR * int(str(one["records"])) / most) if most else 0
        table.add_row(
            str(one["partition"]),
            f"{one['records']:,}",
            "█" * width,
            f"{one['busy_seconds']:.3f}",
            "-" if latency is None else f"{latency:g}",
            f"{last['state_keys']:,}",
            f"{last['state_bytes']:,}",
        )
    console.print(table)


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right")
    return table


def draw(path: str, found: Inspection) -> None:
    """Load of each partition, and balance over the batches, into a PNG file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(9, 6), layout="constrained")
    loads, over_time = figure.subplots(2)
    figure.suptitle(f"{found.grouping or ''} {found.checkpoint}".strip())
    loads.bar(range(found.loads.size), found.loads)
    if found.loads.size:
        loads.axhline(found.loads.mean(), color="black", linewidth=1, label="mean")
        loads.legend()
    loads.set(xlabel="partition", ylabel="records")
    numbers = [one.stats.batch for one in found.batches]
    for name in ("max_over_mean", "busy_max_over_mean", "replication"):
        values = [getattr(one.stats, name) for one in found.batches]
        over_time.plot(numbers, values, label=name.replace("_", " "), marker=".")
    over_time.set(xlabel="batch", ylim=(0.9, None))
    over_time.legend()
    figure.savefig(path, dpi=120, format="png")
