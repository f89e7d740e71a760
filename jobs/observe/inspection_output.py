"""The tables and the plot of an inspection."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from unskew.jobs.local.terminal_tables import make_console, print_fitting
from unskew.jobs.observe.figure import PARTITION, Figure
from unskew.jobs.observe.inspection import Inspection

_DEAD_LETTERS, _BAR, _BAR_WIDTH = "dead letters", "", 30


def print_tables(inspection: Inspection) -> None:
    """Print batches, partitions, hot keys and the merge, a table each."""
    console = make_console()
    data = inspection.data()
    journal = data["journal"]
    console.print(
        f"{inspection.checkpoint}: {inspection.grouping or 'no routing state'};"
        f" {data['records']:,} records in {len(data['batches'])} batches,"
        f" max/mean {data['max_over_mean']:.3f};"
        f" journal {journal['bytes']:,} bytes in {journal['batches']} batches,"
        f" routing state {journal['routing_state_bytes']:,} bytes",
        markup=False,
    )
    columns = [figure for figure in inspection.figures if figure.inspect and figure.column[0]]
    whole = [figure for figure in columns if figure.labels != PARTITION]
    _print_batches(console, whole, data["batches"])
    _print_choices(console, data["batches"])
    _print_results(console, data["batches"])
    by_partition = [figure for figure in columns if figure.labels == PARTITION]
    _print_partitions(console, by_partition, data["partitions"])
    _print_hot_keys(console, data["hot_keys"])
    _print_merge(console, data["merge"])


def _print_hot_keys(console: Console, keys: list[dict[str, Any]]) -> None:
    rows = [
        (key["name"] or key["hash"], f"{key['records']:,}", f"{key['share']:.2%}") for key in keys
    ]
    if rows:
        print_fitting(console, ("hot key", "records", "share"), rows)


def _print_merge(console: Console, parts: list[dict[str, Any]]) -> None:
    rows = [
        (
            str(part["partition"]),
            "no snapshot yet" if part["rows"] is None else f"{part['rows']:,}",
            f"{part['bytes']:,}",
        )
        for part in parts
    ]
    if rows:
        print_fitting(console, ("merge partition", "rows", "bytes"), rows)


def _print_batches(
    console: Console, columns: Sequence[Figure], batches: list[dict[str, Any]]
) -> None:
    columns = _choose_columns(columns, batches)
    headings = [*(figure.column[0] for figure in columns), _DEAD_LETTERS]
    rows = [[*_format_cells(columns, batch), _format_dead_letters(batch)] for batch in batches]
    print_fitting(console, headings, rows, texts=(_DEAD_LETTERS,))


def _print_choices(console: Console, batches: list[dict[str, Any]]) -> None:
    """Print why `grouping: auto` chose: at each change, and after the newest batch."""
    chosen = [batch for batch in batches if batch["taken"] is not None]
    shown = [batch for batch in chosen if batch["taken"] != batch["taken_next"]]
    if chosen and chosen[-1] not in shown:
        shown.append(chosen[-1])
    for batch in shown:
        console.print(
            f"after batch {batch['batch']} {batch['taken_next']}: {batch['taken_why']}",
            markup=False,
        )


def _print_results(console: Console, batches: list[dict[str, Any]]) -> None:
    """Print what became of the batches' records, for each result of a job with several."""
    accounts = [batch["result_accounts"] for batch in batches if batch["result_accounts"]]
    if not accounts:
        return
    words = list(next(iter(accounts[-1].values())))
    rows = []
    for name in accounts[-1]:
        sums = [sum(each[name][word] for each in accounts if name in each) for word in words]
        rows.append([name, *(f"{count:,}" for count in sums)])
    print_fitting(console, ["result", *words], rows)


def _choose_columns(columns: Sequence[Figure], rows: list[dict[str, Any]]) -> list[Figure]:
    """Choose the columns that have a value in any row: a job without a table adds no files, say."""
    return [figure for figure in columns if any(row[figure.inspect] is not None for row in rows)]


def _format_cells(columns: Sequence[Figure], values: dict[str, Any]) -> list[str]:
    parts = [(figure.column[1], values[figure.inspect]) for figure in columns]
    return ["-" if value is None else form.format(value) for form, value in parts]


def _format_dead_letters(batch: dict[str, Any]) -> str:
    counts = sorted(batch["dead_letters"].items())
    text = ", ".join(f"{reason} {count:,}" for reason, count in counts)
    return text if batch["dead_letters_published"] else f"{text} (not sent yet)"


def _print_partitions(
    console: Console, columns: Sequence[Figure], partitions: list[dict[str, Any]]
) -> None:
    columns = _choose_columns(columns, [part["last_batch"] for part in partitions])
    headings = [figure.column[0] for figure in columns]
    headings = ["partition", "records", _BAR, "busy s", "latency p99 s", *headings]
    rows = []
    most = max((part["records"] for part in partitions), default=0)
    for part in partitions:
        latency = part["latency_p99_seconds"]
        width = round(_BAR_WIDTH * part["records"] / most) if most else 0
        rows.append(
            [
                str(part["partition"]),
                f"{part['records']:,}",
                "█" * width,
                f"{part['busy_seconds']:.3f}",
                "-" if latency is None else f"{latency:g}",
                *_format_cells(columns, part["last_batch"]),
            ]
        )
    print_fitting(console, headings, rows, texts=(_BAR,))


def draw(path: str, inspection: Inspection) -> None:
    """Draw load of each partition, and balance over the batches, into a PNG file."""
    from matplotlib.figure import Figure as Picture  # noqa: PLC0415 - an extra

    picture = Picture(figsize=(9, 6), layout="constrained")
    loads, over_time = picture.subplots(2)
    picture.suptitle(f"{inspection.grouping or ''} {inspection.checkpoint}".strip())
    loads.bar(range(inspection.loads.size), inspection.loads)
    if inspection.loads.size:
        loads.axhline(inspection.loads.mean(), color="black", linewidth=1, label="mean")
        loads.legend()
    loads.set(xlabel="partition", ylabel="records")
    numbers = [batch.stats.batch for batch in inspection.batches]
    for name in ("max_over_mean", "busy_max_over_mean", "replication"):
        values = [getattr(batch.stats, name) for batch in inspection.batches]
        over_time.plot(numbers, values, label=name.replace("_", " "), marker=".")
    over_time.set(xlabel="batch", ylim=(0.9, None))
    over_time.legend()
    picture.savefig(path, dpi=120, format="png")
