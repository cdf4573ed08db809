"""The tools: `python -m tessera opt|compile|run|view ARGUMENTS`, or `--version`."""

import os
import sys

from . import __version__
from ._native import Error, find


def main():
    tools = ("opt", "compile", "run", "view")
    if sys.argv[1:] == ["--version"]:
        return print(f"Tessera {__version__}")
    if len(sys.argv) < 2 or sys.argv[1] not in tools:
        sys.exit(f"usage: python -m tessera {'|'.join(tools)} ARGUMENTS")
    if sys.argv[1] == "view":
        from ._view import main as view
        return view(sys.argv[2:])
    try:
        tool = str(find("bin", f"tessera-{sys.argv[1]}"))
    except Error as error:
        sys.exit(f"python -m tessera: error: {error}")
    os.execv(tool, [tool, *sys.argv[2:]])


if __name__ == "__main__":
    main()
