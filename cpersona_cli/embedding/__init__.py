"""The one embedding client: it sends what the server would send, and names what came back."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import cast

# The HTTP library offers a command line of its own where click and rich are installed, and imports both for it: a
# tenth of a second for a name nobody here uses. Taken for missing, it is left out (the library provides for that).
sys.modules.setdefault("httpx._main", cast("ModuleType", None))
