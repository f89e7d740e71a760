"""Every grouping x every check. Both lists are derived: a new member is covered by itself."""

import pytest

from tests.checks import CHECKS
from tests.members import MEMBERS, Member


@pytest.mark.parametrize("member", MEMBERS, ids=str)
@pytest.mark.parametrize("check", CHECKS)
def test_member_keeps_the_promise(check: str, member: Member) -> None:
    CHECKS[check](member)
