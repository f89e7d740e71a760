"""Every grouping x every check. Both lists are derived: a new member is covered by itself."""

from pathlib import Path

import pytest

from tests.grouping.family.checks import CHECKS
from tests.grouping.family.members import AT_BOUNDS, MEMBERS, Member
from tests.grouping.family.processes import (
    hash_seeds_change_nothing,
    kernels_stay_within_their_arrays,
)


@pytest.mark.parametrize("member", MEMBERS, ids=str)
@pytest.mark.parametrize("check", CHECKS)
def test_member_keeps_the_promise(check: str, member: Member) -> None:
    CHECKS[check](member)


@pytest.mark.parametrize("member", AT_BOUNDS, ids=str)
def test_member_with_an_option_at_its_bound_is_sound(member: Member) -> None:
    CHECKS["a_short_life_is_sound"](member)


@pytest.mark.slow
def test_routes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    hash_seeds_change_nothing("tests.grouping.family.members:MEMBERS", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_kernels_stay_within_their_arrays(tmp_path: Path) -> None:
    kernels_stay_within_their_arrays("tests.grouping.family.members:MEMBERS", tmp_path)
