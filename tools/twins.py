"""Name the twins whose cells `make test` runs again: the talks' own chapters, and whatever is not fresh.

The outputs of a fresh twin are what its text, package and tables make: running it again shows only that the machine is
the same. `make test-long` runs them all.
"""

from __future__ import annotations

import re

from notebooks import chapters, is_fresh, twin_of

TALKS = ("prefill", "interference", "architectures")
CHAPTER = re.compile(r"\d+-")  # 02b- goes beyond the talks


def main() -> None:
    """Print them in one line, for pytest."""
    for twin in map(twin_of, chapters()):
        if (twin.parent.name in TALKS and CHAPTER.match(twin.name)) or not is_fresh(twin):
            print(twin, end=" ")


if __name__ == "__main__":
    main()
