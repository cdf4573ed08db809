# ===- failures.py - ranks that die, stop or stay away at random moments ---=== #
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------=== #
"""A rank is killed, is stopped, hangs or skips a collective, at a random moment from
the start to the end; each other rank must say within the deadline and 2 s of its wait which
rank that is, with op and source line if it was in a run; no temporary file may
stay, and no output but a whole one.

usage: failures.py --bin FOLDER [--count N] [--seed N] [-k PART_OF_NAME] [--verbose]

The cases take turns, and so do the ranks:

  mpi      tessera-run under mpirun, which says that a rank is gone: one line
  alone    ... and mpirun itself is stopped: each rank must see for itself
  threads  threads of a program (embed.cpp); and tessera-run --ranks, which is told
           to end and may leave nothing
  sockets  a program whose processes meet through sockets, with a bootstrap

Needs the environment of scripts/mpi.env."""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import load_file, save_file

DEADLINE, SLACK, LATER, RANKS = 2, 2, 2, 3
# Each rank of its own: its folder of marks, its errors.
WRAPPER = """echo $$ >"$0/pid.$OMPI_COMM_WORLD_RANK"
[ -z "$alone" ] || { mkdir "$0/marks.$OMPI_COMM_WORLD_RANK"
export PMIX_SERVER_TMPDIR=$0/marks.$OMPI_COMM_WORLD_RANK; }
exec "$@" 2>"$0/errors.$OMPI_COMM_WORLD_RANK" >"$0/out.$OMPI_COMM_WORLD_RANK" """
PLACE = re.compile(r"\w+\.mlir:\d+")
# What a rank says that is in no run.
OUTSIDE = re.compile(
    r"has waited in MPI_|no answer for|did not connect|MPI_Comm_idup|last seen before the first run"
    r"|last seen between two runs|the launcher ends the other ranks|the caller's all_gather"
)


class Failed(Exception):
    pass


class Late(Exception):
    """The moment was after the end."""


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(what() if callable(what) else what)
        time.sleep(0.01)


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Case:
    def __init__(self, bin, folder, modules, number, random):
        self.bin, self.folder, self.modules, self.random = bin, folder, modules, random
        self.way, self.fault = CASES[number % len(CASES)]
        self.victim = (number + number // len(CASES)) % RANKS
        self.others = [rank for rank in range(RANKS) if rank != self.victim]
        self.processes = []
        self.text = f"{self.way} {self.fault} rank {self.victim}"

    # Starting and ending

    def start(self, *command, **environment):
        process = subprocess.Popen(
            list(map(str, command)), cwd=self.folder, env=dict(os.environ, **environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def pid(self, rank):
        try:
            return int((self.folder / f"pid.{rank}").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def finish(self):
        for process in self.processes:
            for pid in [self.pid(rank) for rank in range(RANKS)]:
                # The pid is still of this job: mpirun has not been waited for.
                if pid and process.poll() is None and is_running(pid):
                    os.kill(pid, signal.SIGKILL)
            try:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def read(self, name):
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return ""

    # What is expected

    def check_text(self, rank, text, took, in_run):
        where = f"rank {rank} after {took:.2f} s: {text}"
        # A wait outside of runs may begin after the fault, and counts from there.
        later = LATER if re.search("has waited in MPI_|no answer for", text) else 0
        if took > DEADLINE + SLACK + later:
            raise Failed(f"too late: {where}")
        # Who gets another rank's error has it from the victim.
        if not re.search(rf"rank {self.victim}\b", text):
            raise Failed(f"does not name rank {self.victim}: {where}")
        if in_run and not PLACE.search(text):
            raise Failed(f"names no place: {where}")
        self.places += bool(PLACE.search(text))
        self.slowest = max(self.slowest, took)

    def check_line(self, rank, line, took):
        """What tessera-run says: in a run, unless its words are those of another place."""
        skip = self.fault == "skip"  # since when is not known
        self.check_text(rank, line, 0 if skip else took, skip or not OUTSIDE.search(line))

    def check_files(self):
        left = [str(path.name) for path in self.folder.glob("out.safetensors.*")]
        if left:
            raise Failed(f"left behind: {left}")
        output = self.folder / "out.safetensors"
        if output.exists():
            np.testing.assert_allclose(load_file(output)["y"], self.modules.y, rtol=1e-4, atol=1e-4)
            self.text += ", with the output whole"

    # Moments

    def choose_runs(self):
        """The moment is before the runs or soon after they begin, among very many of
        them, or when what comes after a few has begun."""
        self.part = self.random.choice(["start", "runs", "end"])
        return 50 if self.part == "end" and self.fault != "skip" else 10**9

    def wait_for_moment(self, begin, process):
        start = self.modules.start
        if self.part != "end":
            first, last = (0, 1.2 * start) if self.part == "start" else (1.2 * start, 1.2 * start + 1)
            moment = self.random.uniform(first, last)
            self.text += f", {moment:.2f} s after the start"
            time.sleep(max(0, begin + moment - time.monotonic()))
            return
        what = self.random.choice(["out.safetensors.*", "out.safetensors", "out.0"])
        self.text += f", when there is {what}"
        while process.poll() is None:
            try:
                if any(path.stat().st_size for path in self.folder.glob(what)):
                    break
            except FileNotFoundError:  # it has its name now
                break
            time.sleep(0.0005)
        time.sleep(self.random.choice([0, 0, 0.001, 0.01]))

    # The ways

    def run(self):
        self.places, self.slowest = 0, 0.0
        try:
            getattr(self, "run_" + self.way)()
        except ProcessLookupError:
            raise Late from None
        finally:
            self.finish()
        self.check_files()

    def run_mpi(self, alone=False):
        rest = ["--inputs", self.modules.inputs, "--output", "out.safetensors", "--deadline", DEADLINE]
        each = ["bash", "-c", WRAPPER, self.folder, self.bin / "tessera-run", self.modules.linear, *rest]
        parts = []
        runs = self.choose_runs()
        for rank in range(RANKS):
            skips = self.fault == "skip" and rank == self.victim
            parts += [":"] * (rank > 0) + ["-n", 1, *each, "--steps"]
            parts.append(self.random.randrange(1, 2000) if skips else runs)
        begin = time.monotonic()
        process = self.start("mpirun", *parts, **{"alone": "1"} if alone else {})
        if self.fault == "skip":
            # Who skips is later than the others by their deadline, at most.
            since, limit = begin, 60
        else:
            # Without mpirun those that it has not started never do.
            ranks = range(RANKS) if alone else [self.victim]
            wait_for(lambda: all(map(self.pid, ranks)), 30, "mpirun starts nothing")
            self.wait_for_moment(begin, process)
            if alone:
                self.processes[-1].send_signal(signal.SIGSTOP)
            if process.poll() is not None or not is_running(self.pid(self.victim)):
                raise Late
            since, limit = self.signal(), DEADLINE + SLACK + LATER + 1
        if not alone:
            # mpirun ends the others, who may be stopped, within 2 s more.
            def said():
                pids = list(map(self.pid, self.others))
                ended = process.poll() is not None or all(pid and not is_running(pid) for pid in pids)
                lines = [(rank, line) for rank in range(RANKS)
                         for line in self.read(f"errors.{rank}").splitlines() if line.startswith("tessera:")]  # fmt: skip
                return lines or (ended and [None])
            lines = wait_for(said, limit, "nobody says anything")
            took = time.monotonic() - since
            if lines == [None] and self.fault == "stop":
                # The others have ended in peace, and mpirun waits for the victim.
                os.kill(self.pid(self.victim), signal.SIGCONT)
                if process.wait(10) != 0:
                    raise Failed("nobody says anything")
                raise Late
            wait_for(lambda: not any(is_running(self.pid(rank) or 0) for rank in range(RANKS)), 6,
                     "the ranks do not end")  # fmt: skip
            try:  # Open MPI 4.1 may forget to end itself
                process.wait(2)
            except subprocess.TimeoutExpired:
                self.text += ", mpirun hangs"
            lines = said()
            if process.returncode == 0:
                if lines != [None]:
                    raise Failed(f"the status is 0: {lines}")
                raise Late
            if lines == [None]:
                # Until the others' programs have begun, and when they have ended in peace,
                # nobody but mpirun can say it.
                text = process.stdout.read()
                begun = self.part != "start" and not (self.folder / "out.safetensors").exists()
                if begun or f"process rank {self.victim} " not in text:
                    raise Failed("nobody says anything: " + text)
                self.text += ", said by mpirun alone"
                return
            if len(lines) != 1:
                raise Failed(f"not one line: {lines}")
            self.check_line(*lines[0], took)
            return
        late = 0
        for rank in self.others:
            pid = self.pid(rank)
            def said():
                ended = pid and not is_running(pid)
                return re.search("^tessera: .*$", self.read(f"errors.{rank}"), re.M) or (ended and "ended")
            found = wait_for(said, limit, lambda: f"rank {rank} says nothing: {self.read(f'errors.{rank}')}")
            took = time.monotonic() - since
            if found == "ended":  # in peace: the victim had nothing more to do
                if not (self.folder / "out.safetensors").exists():
                    raise Failed(f"rank {rank} has ended without a word")
                late += 1
                continue
            self.check_line(rank, found[0], took)
            wait_for(lambda: not is_running(self.pid(rank)), 4, f"rank {rank} does not end")
        if late == len(self.others):
            raise Late

    def run_alone(self):
        self.run_mpi(alone=True)

    def signal(self):
        os.kill(self.pid(self.victim), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[self.fault])
        return time.monotonic()

    def run_threads(self):
        if self.fault == "told":
            process = self.start(
                self.bin / "tessera-run", self.modules.linear, "--ranks", RANKS, "--inputs", self.modules.inputs,
                "--output", "out.safetensors", "--steps", self.choose_runs(),
            )  # fmt: skip
            self.wait_for_moment(time.monotonic(), process)
            which = self.random.choice([signal.SIGTERM, signal.SIGINT])
            if process.poll() is not None:
                raise Late
            process.send_signal(which)
            process.wait(DEADLINE)
            if process.returncode == 0:
                raise Late
            if process.returncode != -which:
                raise Failed(f"ends with {process.returncode}: {process.stdout.read()}")
            return
        runs = 2000
        stage = self.random.choice([0, 1, 2, *[3 + self.random.randrange(runs)] * 3])
        self.text += f" at stage {stage}"
        self.start(self.bin / "failures-embed", "threads", self.folder, self.modules.linear, DEADLINE, runs,
                   RANKS, self.victim, self.fault, stage)  # fmt: skip
        wait_for(lambda: self.read("fault").endswith("\n"), 60, "the fault does not come")
        self.check_embedded(float(self.read("fault")), stage)

    def run_sockets(self):
        runs = 2000 if self.fault == "skip" else 10**9
        skip = self.fault == "skip"
        stage = self.random.choice([0, 1, 2, *[3 + self.random.randrange(2000)] * 3])
        each = [self.bin / "failures-embed", "sockets", self.folder, self.modules.linear, DEADLINE, runs, RANKS]
        each += [self.victim, "skip" if skip else "none", stage]
        self.start("mpirun", "-n", RANKS, "bash", "-c", WRAPPER, self.folder, *each, alone="1")
        ready = [self.folder / f"ready.{rank}" for rank in range(RANKS)]
        wait_for(lambda: all(map(pathlib.Path.exists, ready)), 60, "the ranks are not ready")
        self.processes[-1].send_signal(signal.SIGSTOP)
        if skip:
            self.text += f" at stage {stage}"
            wait_for(lambda: self.read("fault").endswith("\n"), 60, "the fault does not come")
            return self.check_embedded(float(self.read("fault")), stage)
        moment = self.random.uniform(0, self.random.choice([0.1, 1]))
        self.text += f", {moment:.3f} s after the context's begin"
        time.sleep(moment)
        if not is_running(self.pid(self.victim)):
            raise Late
        self.check_embedded(self.signal(), None)

    def check_embedded(self, since, stage):
        """`stage`: of the victim's fault, if known."""
        late = 0
        for rank in self.others:
            pid = self.pid(rank)
            def said():
                return self.read(f"said.{rank}") or (pid and not is_running(pid) and "ended")
            text = wait_for(said, DEADLINE + SLACK + 1, f"rank {rank} says nothing")
            text = self.read(f"said.{rank}") or text
            if text == "ended":
                late += 1
                continue
            at, where, code, culprit, op, location, message = text.splitlines()
            in_run = int(where) >= 3
            # A callback of the program itself fails before the control channel is
            # there, which would name a rank; it says what it knows.
            own = re.search(r"all_gather returned (\d+)", message)
            if own and where == "0":
                culprit = int(own[1]) - 1
            # Nor does MPI say whom it waits for.
            if where == "0" and "MPI_Comm_idup" in message:
                culprit = self.victim
            if int(culprit) != self.victim:
                raise Failed(f"rank {rank} blames rank {culprit}: {text}")
            if in_run and not (op and location):
                raise Failed(f"rank {rank} names no place: {text}")
            self.check_text(rank, f"{location}: {op}: {message} (rank {culprit})", float(at) - since, in_run)
        if late == len(self.others):
            raise Late


CASES = [
    ("mpi", "kill"), ("alone", "kill"), ("alone", "stop"), ("sockets", "kill"), ("threads", "hang"),
    ("mpi", "stop"), ("sockets", "stop"), ("threads", "told"), ("sockets", "skip"), ("threads", "skip"),
    ("mpi", "skip"), ("alone", "skip"),
]  # fmt: skip


class Modules:
    def __init__(self, bin, folder):
        subprocess.run([bin / "make-modules", folder], check=True)
        generator = np.random.default_rng(1)
        x = generator.standard_normal((4, 10)).astype(np.float32)
        w = generator.standard_normal((6, 10)).astype(np.float32)
        self.y = x @ w.T
        self.inputs, self.linear = folder / "in.safetensors", folder / f"linear-{RANKS}.tsr"
        save_file({"x": x, "w": w}, self.inputs)
        # Until the first run, about.
        run = ["mpirun", "-n", str(RANKS), bin / "tessera-run", self.linear, "--inputs", self.inputs]
        begin = time.monotonic()
        subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.start = time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-k", default="")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    bin = args.bin.resolve()
    top = pathlib.Path(tempfile.mkdtemp(prefix="tsr-"))
    modules_folder = top / "modules"
    modules_folder.mkdir()
    modules = Modules(bin, modules_folder)
    source = random.Random(args.seed)
    passed, failed, places, slowest, number = 0, 0, 0, 0.0, 0
    late = 0
    begin = time.monotonic()
    while passed + failed < args.count:
        folder = top / f"case{number}"
        folder.mkdir()
        case = Case(bin, folder, modules, number, source)
        number += 1
        if args.k not in case.text:
            continue
        try:
            try:
                case.run()
                passed += 1
                places += case.places
                slowest = max(slowest, case.slowest)
                verdict = f"ok, {case.places} places, slowest {case.slowest:.2f} s"
            except Late:
                late += 1
                verdict = "late"
                if late > 2 * args.count + 10:
                    raise Failed("moments are always too late")
            if args.verbose:
                print(f"{case.text}: {verdict}", flush=True)
            shutil.rmtree(folder)
        except (Failed, AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{case.text}: failed: {error} [{folder}]", flush=True)
    print(f"{passed} of {passed + failed}, {late} moments after the end, {places} survivors in a run, "
          f"the slowest spoke after {slowest:.2f} s; {time.monotonic() - begin:.0f} s")  # fmt: skip
    if not failed:
        shutil.rmtree(top)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
