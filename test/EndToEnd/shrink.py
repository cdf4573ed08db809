"""Commands on random programs, and programs made smaller while the same is wrong with
them: what scripts/reduce does, in the terms of lit.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 60


def load_reduce():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("reduce", str(ROOT / "scripts/reduce"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reduce", loader))
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = kept
    return module


reduce = load_reduce()
devices = reduce.devices


class Failure(Exception):
    """A command, with %s for the program, that went wrong."""

    def __init__(self, command, bin, status, said):
        self.command, self.bin, self.status, self.said = command, bin, status, said
        super().__init__(f"{self.what()}\n{said[-2000:]}")

    def what(self):
        """What is wrong, without the names and numbers that a smaller program has not."""
        if self.status is None:
            return f"no end after {SECONDS} s"
        if self.status < 0:
            return signal.Signals(-self.status).name
        errors = re.findall(r"error: (.*)|(\w+Error: .*)", self.said)
        error = "".join(errors[0]) if errors else f"status {self.status}"
        error = re.sub(r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>|\[[^\[\]]*\]|'[^']*'", "", error)
        return re.sub(r"-?(?:\d+(?:\.\d+)?(?:e[-+]\d+)?|nan|inf)\b|%\w+", "N", error)[:60]


def run(command, path, bin):
    """Runs a command, with %s for the path, of the tools in a folder."""
    environment = dict(os.environ, PATH=f"{bin}:{os.environ['PATH']}",
                       LLVM_DISABLE_SYMBOLIZATION="1")
    line = [word.replace("%s", str(path)) for word in command]
    try:
        done = subprocess.run(line, capture_output=True, text=True, env=environment,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(command, bin, None, "") from None
    if done.returncode:
        raise Failure(command, bin, done.returncode, done.stderr + done.stdout)


def smaller(text, failure, seconds):
    """A lit file with what is left of the program."""
    os.environ["PATH"] = f"{failure.bin}:{os.environ['PATH']}"
    ranks = re.compile(r"--interpret=\d+")

    def command(text):
        return [ranks.sub(f"--interpret={reduce.devices(text)}", word)
                for word in failure.command]

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.mlir"

        def interesting(text):
            path.write_text(text)
            try:
                run(command(text), path, failure.bin)
            except Failure as other:
                return other.what() == failure.what()
            return False

        if not reduce.normalize(text):
            return text
        text = reduce.reduce(text, interesting, seconds)
    line = shlex.join(command(text)).replace(sys.executable, "%python")
    line = line.replace(str(ROOT / "test"), "%examples/../test")
    line = line.replace(str(pathlib.Path(failure.bin).parent), "%lib/..")
    return f"// RUN: {line}\n{text}"
