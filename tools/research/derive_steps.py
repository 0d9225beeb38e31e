"""Take measurements of GPUs of our own among the tables: data/measured/steps_*.csv, rows as they were measured.

    python tools/research/derive_steps.py 2026-11-26 mine.csv [other.csv ...]
    python tools/research/derive_steps.py 2026-11-26 mine.csv --again

The first argument is the day; `inference-math measure` writes the files, each with its description beside it. A table
is named by GPU, model and weights; its entry in datapackage.json is made anew. With --again a file is of another
machine with the same GPU: measured/again_*.csv, for what machines differ by.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import tables

HARNESS = "https://github.com/inference-math/inference-math/tree/main/src/inference_math_bench/measure"
LICENCE = {
    "name": "CC-BY-4.0",
    "title": "Creative Commons Attribution 4.0",
    "path": "https://creativecommons.org/licenses/by/4.0/",
}
CAUTION = (
    "One GPU of a cloud, for some minutes: another card, another PyTorch or a long load may differ by some per cent"
)


def main() -> None:
    """Write the tables and their entries; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("day", help="of the measurement, as 2026-11-26")
    arguments.add_argument("raw", type=Path, nargs="+", help="files that `inference-math measure` wrote")
    arguments.add_argument("--again", action="store_true", help="another machine with the same GPU")
    arguments.add_argument("--data", type=Path, default=Path("data"))
    options = arguments.parse_args()
    descriptor = options.data / "datapackage.json"
    package = json.loads(descriptor.read_text(encoding="utf-8"))
    for raw in options.raw:
        (resource,) = json.loads(raw.with_suffix(".json").read_text(encoding="utf-8"))["resources"]
        entry = described(resource, options.day, "again" if options.again else "steps")
        (options.data / entry["path"]).write_bytes(raw.read_bytes())
        package["resources"] = [r for r in package["resources"] if r["name"] != entry["name"]] + [entry]
        print(entry["path"])
    descriptor.write_text(tables.described(package) + "\n", encoding="utf-8")


def described(resource: dict[str, Any], day: str, kind: str = "steps") -> dict[str, Any]:
    """Return the entry of a file of the harness among the tables: what it says of itself, and where it comes from."""
    setup = resource["setup"]
    if setup["toy"] or not setup["gpu"]:
        raise ValueError(f"{resource['path']} must be measured on a GPU of the catalogue")
    name = f"{kind}_{setup['gpu']}_{setup['model']}_{setup['weights']}".replace("-", "_")
    machine = {key: value for key, value in setup["machine"].items() if key != "host"}
    return resource | {
        "name": name,
        "path": f"measured/{name}.csv",
        "hardware": f"1 {resource['hardware']}, {machine['power_limit']}, driver {machine['driver']}",
        "revision": f"measured on {day}",
        "licenses": [LICENCE],
        "sources": [{"title": "Measured by this project: inference-math measure", "path": HARNESS}],
        "cautions": [*resource["cautions"], CAUTION],
        "setup": setup | {"machine": machine},
    }


if __name__ == "__main__":
    main()
