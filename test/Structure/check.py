#!/usr/bin/env python3
"""Holds includes and link lines against the order of the parts; and dialects and ops
are compared by class, not by name, as are targets but where they are made.

    check.py            fail if an arrow is not in order.txt, or one there is none
    check.py --arrows   print the arrows that there are

order.txt lists the parts, each after those that it uses. A part is a folder; what
is below it belongs to it, but for folders that are parts themselves.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORDER = pathlib.Path(__file__).with_name("order.txt")
# Where includes are looked up: the include directories of CMakeLists.txt.
ROOTS = ["lib", "dialects", "passes", "include", "test", "lib/Kernels/cuda"]
PRODUCT = ["include", "lib", "dialects", "passes", "tools"]
CODE = PRODUCT + ["test/lib"]
# Not ours, but an arrow all the same: the runtime has none.
FOREIGN = ("mlir/", "llvm/", "lld/")
# On the host, in tests, a header of theirs stands for this one.
ON_HOST = ("EmulatedProduct.h",)
# Of what has MLIR's classes: op.getName() beside text, or the text of a dialect.
WITH_CLASSES = ("dialects/", "passes/", "lib/Compiler/", "lib/Interpreter/", "tools/")
BY_NAME = re.compile(r'getName\(\)\.getDialectNamespace\(\)'
                     r'|[Dd]ialect\s*[=!]=\s*"'
                     r'|(?:[=!]=\s*|starts_with\()"(?:tv|comm|plan|schedule)\.'
                     r'|getName\(\)\.getStringRef\(\)\s*[=!]=')
# What is compared with the text of a target; only where one is made of its name.
TARGET = r'"(?:cpu|cuda|sm_)[^"]*"'
BY_TARGET = re.compile(rf'[=!]=\s*{TARGET}|{TARGET}\s*[=!]='
                       r'|(?:starts_with|ends_with|consume_\w+|contains|find|compare'
                       rf'|equals\w*|Case|str\w*cmp)\((?:[^();"]*,\s*)?{TARGET}')
FACTORIES = {f"lib/Compiler/Targets/{file}.cpp"
             for file in ("CPU/Target", "CUDA/Hopper", "CUDA/Portable")}
INCLUDE = re.compile(r'^\s*#?\s*include\s+"([^"]+)"', re.M)


def read_order(text):
    """The parts in order: {folder: folders that it uses}."""
    order = {"mlir": []}
    for line in text.splitlines():
        line = line.split("#")[0]
        if not line.strip():
            continue
        part, _, used = line.partition(":")
        part, used = part.strip(), used.split()
        for each in used:
            if each not in order:
                sys.exit(f"order.txt: {part} uses {each}, which does not come before it")
        if part in order:
            sys.exit(f"order.txt: {part} twice")
        order[part] = used
    return order


def part_of(path, order):
    """The innermost part that a path is in, if any."""
    while path and path != ".":
        if path in order:
            return path
        path = str(pathlib.PurePosixPath(path).parent)
    return None


def parts_below(folder, order):
    """A folder of several parts, such as that of a library, stands for them all."""
    part = part_of(folder, order)
    return [part] if part else [p for p in order if p.startswith(folder + "/")]


def find_included(name, file):
    """The path below ROOT of what `file` includes; of what is generated, the one
    that it would have beside the CMakeLists.txt that makes it."""
    roots = [ROOT / root for root in ROOTS]
    for folder in [file.parent, *roots]:
        if (folder / name).exists():
            return str((folder / name).resolve().relative_to(ROOT))
    for folder in roots:
        if "/" in name and (folder / name).with_name("CMakeLists.txt").exists():
            return str((folder / name).relative_to(ROOT))
    return None


def find_includes(order, problems):
    """Arrows between parts: {(from, to): where}."""
    arrows = {}
    for root in CODE:
        for file in sorted((ROOT / root).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".td", ".cuh", ".cu"):
                continue
            path = str(file.relative_to(ROOT))
            part = part_of(path, order)
            if not part:
                problems.append(f"{path} is in no part of order.txt")
                continue
            for match in INCLUDE.finditer(text := file.read_text()):
                name = match[1]
                if name in ON_HOST:
                    continue
                where = f"{path}:{text[:match.start()].count(chr(10)) + 1}"
                if name.startswith(FOREIGN):
                    to = "mlir"
                else:
                    found = find_included(name, file)
                    to = part_of(found, order) if found else None
                if to is None:
                    problems.append(f"{where} includes {name}, which is in no part")
                elif to != part:
                    arrows.setdefault((part, to), f"{where} includes {name}")
    return arrows


def find_links(order, problems):
    """Arrows of link lines, between the folders that the libraries are of."""
    folders, lines = {}, []
    for root in CODE:
        for file in sorted((ROOT / root).rglob("CMakeLists.txt")):
            folder = str(file.parent.relative_to(ROOT))
            text = re.sub(r"#.*", "", file.read_text())
            for command, body in re.findall(r"\b(\w+)\s*\(([^()]*)\)", text):
                words = re.sub(r"\$\{\w+\}|\$<.*?>", "", body).split()
                if command in ("add_library", "add_executable"):
                    folders[words[0]] = folder
                elif command == "tessera_passes":
                    folders["Tessera" + words[0]] = folder
                    lines.append((file, folder, words[words.index("LIBS") + 1:]))
                elif command == "target_link_libraries":
                    lines.append((file, folder, words[1:]))
    arrows = {}
    for file, folder, words in lines:
        for library in words:
            target = folders.get(library)
            if not target or target == folder:
                continue
            where = f"{file.relative_to(ROOT)} links {library}"
            pairs = [(a, b) for a in parts_below(folder, order)
                     for b in parts_below(target, order)]
            if not pairs:
                problems.append(f"{where}, between parts that order.txt does not list")
            arrows[where] = pairs
    return arrows


def check_names(problems):
    for root in PRODUCT:
        for file in sorted((ROOT / root).rglob("*")):
            if file.suffix not in (".cpp", ".h", ".td"):
                continue
            text, path = file.read_text(), str(file.relative_to(ROOT))
            targets = list(BY_TARGET.finditer(text))[path in FACTORIES:]
            found = [(match, "plan::Target answers for each target") for match in targets]
            if path.startswith(WITH_CLASSES):
                found += [(match, "isa<> asks for a class, trait or interface")
                          for match in BY_NAME.finditer(text)]
            for match, instead in found:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path}:{line} compares a name; {instead}")


def check_readme(order, problems):
    """README's table has a row for the folders of all parts, and for no other."""
    def outer(path):
        return "/".join(path.split("/")[:2])
    named = set()
    for cell in re.findall(r"^\| (`.*?) \|", (ROOT / "README.md").read_text(), re.M):
        named |= {each.rstrip("/") for each in re.findall(r"`([^`]+)`", cell)}
    parts = {outer(p) for p in order if p.split("/")[0] in PRODUCT and p != "mlir"}
    named = {each for each in named if each.split("/")[0] in PRODUCT}
    for each in sorted(parts - named):
        problems.append(f"README.md: the table of folders has no {each}")
    for each in sorted(named - parts):
        problems.append(f"README.md: {each} is in the table of folders, not in order.txt")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arrows", action="store_true")
    args = parser.parse_args()
    order = read_order(ORDER.read_text())
    problems = []
    includes = find_includes(order, problems)
    if args.arrows:
        for part in order:
            print(f"{part}: {' '.join(to for to in order if (part, to) in includes)}")
        return
    for (part, to), where in sorted(includes.items()):
        if to not in order[part]:
            problems.append(f"{where}: {part} may not use {to}")
    links = find_links(order, problems)
    for where, pairs in links.items():
        if pairs and not any(b in order[a] for a, b in pairs):
            problems.append(f"{where}: {pairs[0][0]} may not use {pairs[0][1]}")
    linked = {pair for pairs in links.values() for pair in pairs}
    for part, used in order.items():
        if part != "mlir" and not (ROOT / part).is_dir():
            problems.append(f"order.txt: there is no folder {part}")
        for to in used:
            if (part, to) not in includes and (part, to) not in linked:
                problems.append(f"order.txt: {part} does not use {to}")
    check_readme(order, problems)
    check_names(problems)
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(order)} parts, {len(includes)} arrows")


if __name__ == "__main__":
    main()
