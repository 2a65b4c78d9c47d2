from __future__ import annotations

import pytest
from support.cases_names import CASES
from support.traps import Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_which_settings_are_set_and_read(case: Case) -> None:
    case.check()
