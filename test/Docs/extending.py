#!/usr/bin/env python3
"""Builds and runs what docs/extending.md shows: `extending.py --build build`.

A block of ```LANGUAGE FILE is a new file, or goes to the end of the file that is there;
`before` or `after` behind it and the begin of a line say another place. The tools are
built from the given build with these files in place of the tree's: TableGen's output is
made anew, the few sources that it makes code in and the new ones are compiled, and linked
with the archives that are there. Then the lit files run, the examples of the passes, and
the programs against NumPy.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Sources that hold what TableGen writes.
GENERATED = ("dialects/TensorView/TensorViewDialect.cpp",
             "dialects/TensorView/TensorViewOps.cpp", "lib/Compiler/Register.cpp")


def run(command, **options):
    shell = isinstance(command, str)
    result = subprocess.run(["bash", "-c", command] if shell else command, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if result.returncode:
        sys.exit(f"extending: {command if shell else ' '.join(map(str, command))}\n"
                 f"{result.stdout[-6000:]}")
    return result.stdout


def apply(page, scratch):
    """Writes the page's files below `scratch`; gives their paths."""
    paths = {}
    for path, where, line, text in re.findall(
            r"^```[\w+]+ (\S+)(?: (before|after) ([^\n]+))?\n(.*?)^```$", page, re.S | re.M):
        target = scratch / path
        original = target if target.exists() else ROOT / path
        if original.exists():
            lines = original.read_text().splitlines(keepends=True)
            at = [i for i, each in enumerate(lines) if line and each.startswith(line)]
            if line and not at:
                sys.exit(f"extending: no line of {path} begins with '{line}'")
            at = at[-1] if where == "before" else at[0] + 1 if where else len(lines)
            text = "".join(lines[:at]) + text + "".join(lines[at:])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        paths[path] = True
    return list(paths)


def build(paths, scratch, build_folder):
    library = (build_folder / "lib/libtessera-compiler.so").resolve()
    linked = ["bin/tessera-opt", f"lib/{library.name}"]
    commands = run(["ninja", "-C", build_folder, "-t", "commands",
                    *linked]).splitlines()
    tds = [f"/{path}" for path in paths if path.endswith(".td")]
    for command in commands:
        if "mlir-tblgen" not in command:
            continue
        folder, command = re.match(r"cd (\S+) && (.*?--write-if-changed -o \S+)",
                                   command).groups()
        td = re.search(r"(\S+\.td)", command)[1]
        if not (td.endswith(tuple(tds)) or td.endswith("TensorViewOps.td")):
            continue
        path = os.path.relpath(td, ROOT)
        made = scratch / "made" / os.path.relpath(folder, build_folder)
        made.mkdir(parents=True, exist_ok=True)
        command = command.replace(td, str(scratch / path) if path in paths else td)
        run(command.replace(" -I ", f" -I {scratch}/dialects -I ", 1), cwd=made)

    objects = []  # with the archive that each is of
    for source in [*GENERATED, *(p for p in paths if p.endswith(".cpp"))]:
        # A new one is compiled as its neighbours are.
        like = source if (ROOT / source).exists() else os.path.dirname(source)
        command = next(c for c in commands if f" -c {ROOT}/{like}" in c)
        # Precompiled headers are of the tree's ops.
        command = re.sub(r" -Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+", "",
                         command)
        archive = re.search(r"CMakeFiles/([\w-]+)\.dir/", command)[1]
        object_ = str(scratch / "made" / (source.replace("/", "_") + ".o"))
        command = re.sub(r" -MD .* -c \S+$", "", command)
        command = command.replace(
            " -I", f" -I{scratch}/made/dialects -I{scratch}/made/passes -I", 1)
        text = scratch / source if source in paths else ROOT / source
        run(f"{command} -o {object_} -c {text}", cwd=build_folder)
        objects.append((archive, object_))

    for folder in ("bin", "lib"):
        (scratch / folder).mkdir(exist_ok=True)
        for file in (build_folder / folder).iterdir():
            if f"{folder}/{file.name}" not in linked and not file.is_dir():
                (scratch / folder / file.name).symlink_to(file)
    for file in linked:
        command = next(c for c in commands if f" -o {file} " in c)
        own = " ".join(each for archive, each in objects if f"/lib{archive}.a" in command)
        run(command.replace(f" -o {file} ", f" {own} -o {scratch}/{file} "), cwd=build_folder)
    # tessera-compile is as it was, with this compiler.
    (scratch / "lib" / "libtessera-compiler.so.0").unlink()
    (scratch / "lib" / "libtessera-compiler.so.0").symlink_to(library.name)
    os.environ["LD_LIBRARY_PATH"] = str(scratch / "lib")


def test(paths, scratch, build_folder, lit):
    # The tree's settings, of the tools and files here.
    site = (build_folder / "test/lit.site.cfg.py").read_text()
    site = re.sub(r"(config.tessera_build = ).*", rf'\1"{scratch}"', site)
    site += f'config.test_source_root = "{scratch}/test"\n'
    (scratch / "test/lit.site.cfg.py").write_text(site)
    print(run([*lit, "-sv", *(scratch / p for p in paths if p.endswith(".mlir"))]))

    for td in ROOT.glob("passes/*/Passes.td"):
        copy = scratch / td.relative_to(ROOT)
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(td, copy)
    run([sys.executable, ROOT / "test/Passes/descriptions.py", scratch / "bin/tessera-opt",
         scratch / "passes"])
    for script in (ROOT / "test/EndToEnd").glob("*.py"):
        if not (scratch / "test/EndToEnd" / script.name).exists():
            shutil.copy(script, scratch / "test/EndToEnd")
    (scratch / "scripts").symlink_to(ROOT / "scripts")
    print(run([sys.executable, scratch / "test/EndToEnd/run_programs.py", "--build", scratch,
               "--transport", "threads",
               *(scratch / p for p in paths if p.startswith("test/Programs/"))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--lit", nargs="+", default=["lit"])
    args = parser.parse_args()
    build_folder = args.build.resolve()
    scratch = build_folder / "test/Docs/extending"  # one place, for ccache
    shutil.rmtree(scratch, ignore_errors=True)
    paths = apply((ROOT / "docs/extending.md").read_text(), scratch)
    build(paths, scratch, build_folder)
    test(paths, scratch, build_folder, args.lit)


if __name__ == "__main__":
    main()
