"""Decoded records become the rows of a table that are routed: their columns, key, or `rejected`."""

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType

from unskew.config.models.job import Job
from unskew.config.types.partition_columns import PartitionColumn, partition_column
from unskew.jobs.operators.base import KEY, KEY_HASH, Operator
from unskew.jobs.query.decode import REJECT_REASON
from unskew.jobs.query.expressions import add_values, drop_filtered, select_wanted
from unskew.jobs.query.prepare import ARRIVED, REJECTED, make_rejected_record
from unskew.jobs.query.source import COLUMNS

PARTITION_VALUE_UNUSABLE = "partition_value_unusable"
FOLDER_BYTES_MAX = 255
"""The longest name that a folder may have on common file systems."""
PREFIX = "row_"
"""Before the names of the table's columns, beside which there are ours."""
SIZE = "size"
"""The bytes of a row in a file of the table; only where the grouping balances bytes."""
_FIXED_SIZES = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "float": 4,
    "date": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
_NUMBERED = "_column_"
_BARE = re.compile(r"\s*`?([A-Za-z_][A-Za-z0-9_]*)`?\s*")
# What Hive's rules for names of folders write as a percent sign and two digits: a byte becomes
# three. Control characters are among them.
_ESCAPED = "\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 32)))
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def prepare_rows(decoded: DataFrame, operator: Operator, job: Job) -> tuple[DataFrame, Operator]:
    """One row a record: the columns to write under a prefix, the key by which the table is
    partitioned and its hash, when it arrived, and `rejected`.
    """
    rows = compute_columns(decoded, operator, job)
    partitions = _spell(read_partition_columns(job), rows.columns)
    computed = {name: text for name, text in partitions if text is not None}
    names = [*_list_columns(operator, job), *computed]
    rows = add_values(rows, computed) if computed else rows
    unusable = [_find_unusable(rows, column.name) for column in partitions]
    reason = sf.coalesce(sf.col(REJECT_REASON), *unusable)
    rows = rows.withColumn(REJECT_REASON, reason)
    prepared = rows.select(
        *[sf.col(f"`{name}`").alias(f"{PREFIX}{name}") for name in names],
        *([_make_key(partitions).alias(KEY)] if job.metrics.hot_key_names else []),
        _compute_hash(partitions).alias(KEY_HASH),
        *([_compute_size(rows, names, partitions)] if _balances_bytes(job) else []),
        sf.col("raw_timestamp").alias(ARRIVED),
        sf.when(sf.col(REJECT_REASON).isNotNull(), make_rejected_record()).alias(REJECTED),
    )
    return prepared, operator


def select_table_columns(rows: DataFrame) -> DataFrame:
    """Select the columns of the table, by their own names."""
    names = [name for name in rows.columns if name.startswith(PREFIX)]
    return rows.select(*[sf.col(f"`{n}`").alias(n.removeprefix(PREFIX)) for n in names])


def read_partition_columns(job: Job) -> Sequence[PartitionColumn]:
    """Read what the job's table is partitioned by."""
    texts: list[str] = getattr(job.sinks[0], "partition_by", [])
    return [partition_column(text) for text in texts]


def _balances_bytes(job: Job) -> bool:
    return getattr(job.grouping, "balance", "") == "bytes"


def _spell(columns: Sequence[PartitionColumn], names: Sequence[str]) -> list[PartitionColumn]:
    """Spell the columns of the partitioning as the table's rows do: Spark ignores case."""
    spelled = {name.lower(): name for name in names}
    return [
        column._replace(name=spelled.get(column.name.lower(), column.name)) for column in columns
    ]


def _list_columns(operator: Operator, job: Job) -> list[str]:
    names: list[str] = operator.options.list_columns(job.decode, job.select)
    return names


def compute_columns(decoded: DataFrame, operator: Operator, job: Job) -> DataFrame:
    """The records that are wanted, with the columns that the table is to have."""
    names = _list_columns(operator, job)
    texts: dict[str, str] = operator.options.columns or {name: f"`{name}`" for name in names}
    where: str | None = operator.options.where
    rows = drop_filtered(select_wanted(decoded, job, where))
    known = {name.lower() for name in rows.columns}
    # A column as it is cannot raise; each of the others is tried, under a name of its own.
    bare = {name: match.group(1) for name in names if (match := _BARE.fullmatch(texts[name]))}
    # `true`, `null` and `current_date` are words, too.
    taken = {name: column for name, column in bare.items() if column.lower() in known}
    tried = {f"{_NUMBERED}{n}": texts[name] for n, name in enumerate(names) if name not in taken}
    numbered = {name: f"{_NUMBERED}{n}" for n, name in enumerate(names)}
    rows = add_values(rows, tried) if tried else rows
    return rows.select(
        *[sf.col(f"`{taken.get(name, numbered[name])}`").alias(name) for name in names],
        REJECT_REASON,
        *[sf.col(f"raw_{name}") for name in COLUMNS],
    )


def _find_unusable(rows: DataFrame, name: str) -> Column:
    """Give the reason of a text that cannot be part of a folder's name; null for all others.

    The name that stands for no value would be read back as null, and bytes that are no UTF-8 would
    not be found again, or not even be made.
    """
    if not isinstance(rows.schema[name].dataType, StringType | BinaryType):
        return sf.lit(None).cast("string")
    value = sf.col(f"`{name}`").cast("string")
    most = FOLDER_BYTES_MAX - len(name) - 1
    size = sf.octet_length(value)
    plain = sf.octet_length(sf.translate(value, _ESCAPED, ""))
    too_long = (size * 3 > most) & (size * 3 - plain * 2 > most)
    unreadable = sf.contains(value, sf.lit("\0")) | ~sf.is_valid_utf8(value)
    return sf.when(too_long | unreadable | (value == _NO_VALUE), PARTITION_VALUE_UNUSABLE)


def _compute_size(
    rows: DataFrame, names: Sequence[str], partitions: Sequence[PartitionColumn]
) -> Column:
    """The bytes of a row's values as they are, but those that the folder's name holds; at least 1.

    A text or binary has its own, a number those of its type, all else those of its text. What is
    rejected is in no file, and has none.
    """
    folders = {column.name.lower() for column in partitions}
    sizes = [_compute_bytes(rows, name) for name in names if name.lower() not in folders]
    size = sf.greatest(sum(sizes, sf.lit(0)), sf.lit(1)).cast("bigint")
    return sf.when(sf.col(REJECT_REASON).isNull(), size).otherwise(0).alias(SIZE)


def _compute_bytes(rows: DataFrame, name: str) -> Column:
    kind, value = rows.schema[name].dataType.simpleString(), sf.col(f"`{name}`")
    if kind in _FIXED_SIZES:
        return sf.lit(_FIXED_SIZES[kind])
    if kind.startswith("decimal"):
        return sf.lit(16)
    text = value if kind == "binary" else value.cast("string")
    return sf.coalesce(sf.octet_length(text), sf.lit(0))


def _make_key(columns: Sequence[PartitionColumn]) -> Column:
    """The partition's values as a text, for displays."""
    texts = [sf.coalesce(sf.col(f"`{c.name}`").cast("string"), sf.lit(_NO_VALUE)) for c in columns]
    return sf.concat_ws("/", *texts) if texts else sf.lit("")


def _compute_hash(columns: Sequence[PartitionColumn]) -> Column:
    """The hash by which rows are routed; rejected ones are spread evenly over partitions."""
    coordinates = sf.xxhash64("raw_topic", "raw_partition", "raw_offset", "raw_value")
    values = sf.xxhash64(*[sf.col(f"`{c.name}`") for c in columns]) if columns else sf.lit(0)
    return sf.when(sf.col(REJECT_REASON).isNull(), values.cast("bigint")).otherwise(coordinates)
