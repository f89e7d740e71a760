"""What every grouping promises, as checks by name.

`tests/grouping/family/test_family.py` runs them over all members;
`tests/grouping/family/test_checks_bite.py` shows for each of them that it rejects a grouping which
breaks that promise.
"""

from tests.grouping.family import checks_of_options, checks_of_routes, checks_of_state

CHECKS = {**checks_of_routes.check, **checks_of_state.check, **checks_of_options.check}
