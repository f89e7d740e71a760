"""The generator's benchmark runs, at a size that shows nothing but that it does: no times here."""

import pytest

from benchmarks import generate


@pytest.mark.slow
@pytest.mark.e2e
def test_a_stream_has_a_row_at_full_speed_and_one_for_each_rate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    generate.main(["trades", "--records", "2000", "--seconds", "1"])

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    assert [row[:3] for row in rows] == [
        ["trades", "-", "2,000"],
        ["trades", "50", "50"],
        ["trades", "20,000", "20,000"],
    ]
    assert all(len(row) == len(header) for row in rows)
