from __future__ import annotations

import pytest
from support.cases_names_url import CASES
from support.traps import Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_addresses_keys_and_models(case: Case) -> None:
    case.check()
