#!/usr/bin/env python3
"""Gradients of random programs, in the interpreter.

Each program of random_programs becomes a function whose gradients by all of its float
arguments a tv.gradient asks for, of all of its float results. What tv-differentiate makes
of it goes to the local phase and runs on every rank against itself unsharded; and, where
the program is smooth, small and not of f64, against differences of the source.

    random_gradients.py --build build --seeds 0:40
"""
import os
import re

import random_programs
import shrink
import tvnumpy

# Where differences see both sides.
KINKS = re.compile(r"\b(max|min|abs|maximumf|minimumf|absf|cmpf|compare|where|fptosi|top_k)\b")
NOT_COMPARED = ("differences at most", "nothing to compare")


def gradient_of(text):
    """The program that asks for its gradients; None where there are none."""
    at = text.index("func.func @main(")
    begin = text.index("(", at)
    end = tvnumpy.closing(text, begin)
    arguments = [part.strip() for part in tvnumpy.split(text[begin + 1:end - 1])]
    rest = text[end:]
    begin = rest.index("(")
    results = tvnumpy.split(rest[begin + 1:tvnumpy.closing(rest, begin) - 1])
    names = [argument.split(":")[0] for argument in arguments]
    types = [argument.split(": ", 1)[1] for argument in arguments]
    types = [text[:tvnumpy.closing(text, text.index("<"))] for text in types]

    def floats(types):
        return [i for i, t in enumerate(types) if tvnumpy.Type(t).element in tvnumpy.EPS]

    def without_view(type_):
        return re.match(r"tensor<[^,>]*", type_)[0] + ">"

    of, to = floats(results), floats(types)
    if not of or not to:
        return None
    given = [without_view(results[i]) for i in of]
    made = results + [without_view(types[i]) if "partial" in types[i] else types[i] for i in to]
    cotangents = [f"%dy{i}" for i in of]
    return (text[:at] + "func.func private @program("
            + ", ".join(f"{n}: {t}" for n, t in zip(names, types)) + ")" + rest
            + "func.func @main("
            + ", ".join(arguments + [f"{n}: {t}" for n, t in zip(cotangents, given)])
            + f") -> ({', '.join(made)}) {{\n"
            f"  %g:{len(made)} = tv.gradient @program({', '.join(names)}) of {of}"
            f" with ({', '.join(cotangents)}) to {to}\n"
            f"      : ({', '.join(types + given)}) -> ({', '.join(made)})\n"
            f"  return {', '.join(f'%g#{i}' for i in range(len(made)))} : {', '.join(made)}\n}}\n")


def main():
    args = random_programs.arguments(__doc__).parse_args()
    args.without = [*args.without, "dynamic", "errors"]
    bin = os.path.join(args.build, "bin")

    def check(program, seed, folder):
        text = gradient_of(program.text())
        if not text:
            return
        program.made = text  # what is printed if it fails
        path, ops = (os.path.join(folder, name) for name in ("program.mlir", "ops.mlir"))
        with open(path, "w") as f:
            f.write(text)
        differentiate = ["tessera-opt", "%s", "--tv-inline", "--tv-inline-regions",
                         "--tv-differentiate"]
        shrink.run([*differentiate, "-o", ops], path, bin)
        ranks = f"--interpret={program.ranks()}"
        shrink.run(["tessera-opt", "%s", "--tessera=to=local", ranks, "-o", os.devnull], ops, bin)
        if KINKS.search(text):
            return
        try:
            shrink.run([*differentiate, ranks, "-o", os.devnull], path, bin)
        except shrink.Failure as failure:
            if not any(why in failure.said for why in NOT_COMPARED):
                raise

    random_programs.run_seeds(args, check)


if __name__ == "__main__":
    main()
