"""Passes from local tensors to kernels ask ops, not their names: op_names.py LIMIT.

Lists each place in passes/Kernels that asks whether an op is one of tv or comm
(isa, dyn_cast, .Case, getDefiningOp); an interface is no such place. Fails
where there are more than LIMIT, or at one without a comment, on its line or the one
above, that says why.
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "passes/Kernels"
ASKS = re.compile(
    r"\b(?:(?:isa|dyn_cast)(?:_\w+)?|getDefiningOp|Case)\s*"
    r"(?:<[^<>;]*?\b(?:tv|comm)::\w+Op\b[^<>;]*?>"
    r"|\(\s*\[[^\]]*\]\s*\((?:tv|comm)::\w+Op\b)")

places, unexplained = 0, 0
for path in sorted([*FOLDER.glob("*.cpp"), *FOLDER.glob("*.h")]):
    text = path.read_text()
    lines = text.splitlines()
    for match in ASKS.finditer(text):
        number = text.count("\n", 0, match.start())
        places += 1
        why = [line for line in lines[max(number - 1, 0):number + 1] if "//" in line]
        unexplained += not why
        print(f"{path.name}:{number + 1}: {lines[number].strip()}"
              + ("" if why else "   <- why?"))
limit = int(sys.argv[1])
print(f"{places} places, {limit} at most; {unexplained} without a reason")
sys.exit(places > limit or unexplained > 0)
