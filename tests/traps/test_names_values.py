from __future__ import annotations

import pytest
from support.cases_names_values import CASES
from support.traps import Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_that_cannot_be_used(case: Case) -> None:
    case.check()
