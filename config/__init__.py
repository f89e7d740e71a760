"""Jobs as YAML: models, loader with positions, errors.

>>> from unskew.config import load_job
>>> load_job("word_count").name
'word_count'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unskew.config.loader import load_job
    from unskew.config.models.job import Job

__all__ = ["Job", "load_job"]


def __getattr__(name: str) -> Any:
    # On use: whoever only needs `config.errors` must not wait for pydantic and numba.
    if name == "load_job":
        from unskew.config.loader import load_job  # noqa: PLC0415

        return load_job
    if name == "Job":
        from unskew.config.models.job import Job  # noqa: PLC0415

        return Job
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
