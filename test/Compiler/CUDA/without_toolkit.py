#!/usr/bin/env python3
"""Kernels compile on a machine that has NVRTC only in .venv, from PyPI.

Hides NVRTC and the toolkit that this machine has: in a mount namespace, an empty folder
is bound over each /usr/local/cuda* and an empty file over each libnvrtc that the loader
knows. Then a program compiles, by the tool and by Python's package, and the loader's own
words (LD_DEBUG) must be that NVRTC and its builtins came from .venv. With .venv's hidden too, the compiler must name every
place that it tried.

Where no mount namespace can be had (a container without CAP_SYS_ADMIN), it says so, and
only shows that .venv's NVRTC, named by --nvrtc, compiles with its own builtins.

    without_toolkit.py --build build PROGRAM
"""
import argparse
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import machine_code

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Compiles its first argument; a second one says where NVRTC is.
PYTHON = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT / "python")!r})
import tessera
tessera.compile(pathlib.Path(sys.argv[1]).read_text(), target="cuda:sm_90a",
                nvrtc=sys.argv[2].removeprefix("--nvrtc=") if sys.argv[2:] else None)
"""


def find_toolkits():
    """What has to be hidden: folders and files."""
    cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True)
    files = re.findall(r"libnvrtc\S* .*=> (\S+)", cache.stdout)
    paths = {os.path.realpath(path) for path in files + glob.glob("/usr/local/cuda*")}
    folders = {path for path in paths if os.path.isdir(path)}
    return sorted(folders) + sorted(
        path for path in paths - folders
        if os.path.exists(path) and not any(path.startswith(f + "/") for f in folders))


def find_unshare():
    """A command that runs another in a mount namespace; or why there is none."""
    why = []
    for flags in ["-m"], ["-r", "-m"]:
        # In the second, one is root in a user namespace.
        command = ["unshare", *flags]
        try:
            run = subprocess.run([*command, "mount", "--bind", "/tmp", "/tmp"],
                                 capture_output=True, text=True)
        except OSError as error:
            return None, str(error)
        if run.returncode == 0:
            return command, ""
        why.append(run.stderr.strip())
    return None, "; ".join(why)


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.compiler = pathlib.Path(args.build).resolve() / "bin/tessera-compile"
        (self.folder / "empty").mkdir()
        (self.folder / "file").touch()
        self.unshare, self.why = find_unshare()

    def compile(self, hidden, *flags, tool=None):
        """Status and standard error without `hidden`, from an empty cache."""
        cache = tempfile.mkdtemp(dir=self.folder)
        env = {name: value for name, value in os.environ.items()
               if name not in ("LD_LIBRARY_PATH", "TESSERA_NVRTC")}
        env |= {"TESSERA_CACHE": cache, "LD_DEBUG": "libs",
                "TESSERA_ROOT": str(self.compiler.parents[1])}
        command = tool or [self.compiler, self.args.program, "--target=cuda:sm_90a", *flags,
                           "-o", self.folder / "module.tsr"]
        if hidden:
            mounts = "".join(
                f"mount --bind '{self.folder}/{'empty' if os.path.isdir(path) else 'file'}' "
                f"'{path}' && " for path in map(str, hidden))
            # LD_DEBUG is only for the compiler.
            env["SHOW"] = env.pop("LD_DEBUG")
            command = [*self.unshare, "sh", "-c", mounts + 'exec env LD_DEBUG="$SHOW" "$@"',
                       "sh", *command]
        run = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
        kernels = len(list(pathlib.Path(cache).glob("*.cubin")))
        return run.returncode, run.stderr, kernels


def check(condition, what, output):
    if not condition:
        lines = [line for line in output.splitlines()
                 if "nvrtc" in line.lower() or not re.match(r"\s+\d+:\t", line)]
        sys.exit(f"failed: {what}\n" + "\n".join(lines[-40:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("program")
    args = parser.parse_args()
    nvrtc = machine_code.find("lib/libnvrtc.so.13", "nvidia-cuda-nvrtc").parent
    toolkits = find_toolkits()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(args, folder)
        flags = []
        if toolkits and not test.unshare:
            print(f"NOT HIDDEN: {', '.join(toolkits)}, for there is no mount namespace "
                  f"({test.why}); so .venv's NVRTC is named by --nvrtc")
            toolkits, flags = [], [f"--nvrtc={nvrtc}"]
        # That of the package is in Python's process.
        python = [sys.executable, "-c", PYTHON, args.program, *flags]
        for tool in None, python:
            status, output, kernels = test.compile(toolkits, *flags, tool=tool)
            check(status == 0, "does not compile with .venv's NVRTC", output)
            check(kernels > 0, "no kernel was compiled", output)
            # Each library that was opened has its initializer called.
            opened = {pathlib.Path(path).name: pathlib.Path(path).parent.resolve()
                      for path in re.findall(r"calling init: (\S*libnvrtc\S*)", output)}
            for name in "libnvrtc.so.13", "libnvrtc-builtins.so.13.0":
                check(opened.get(name) == nvrtc.resolve(),
                      f"{name} is not {nvrtc}'s, but from {opened.get(name)}", output)
        print(f"{kernels} kernels compiled by {nvrtc}/libnvrtc.so.13, without "
              f"{', '.join(toolkits) or 'any other hidden'}")
        if not test.unshare:
            return
        status, output, kernels = test.compile([*toolkits, nvrtc])
        check(status != 0 and kernels == 0, "compiles without any NVRTC", output)
        for text in ("error: cuda kernels need NVRTC of CUDA 13", "nvidia-cuda-nvrtc",
                     "\n  libnvrtc.so.13: ", "\n  /usr/local/cuda/lib64/libnvrtc.so.13: ",
                     f"\n  {nvrtc}/libnvrtc.so.13: "):
            check(text in output, f"the error lacks '{text.strip()}'", output)
        print("without any NVRTC the error names each place that was tried")


if __name__ == "__main__":
    main()
