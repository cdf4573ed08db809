"""tessera-run where a rank stops or dies, or the machine lacks what it asks for: one line
that says so, and no file left.

usage: test_ending.py BIN_FOLDER MPI_ENVIRONMENT_FILE FAKES BLAS"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
from safetensors.numpy import save_file

from runs import BIN, ENVIRONMENT, Runs


class Ending(Runs):
    def test_a_rank_that_stops_is_named(self):
        process = self.start(
            "linear-3.tsr",
            "--inputs", "in.safetensors",
            "--steps", 10**9,
            "--deadline", 2,
            mpi=3,
        )  # fmt: skip
        stopped = self.pid_of(process, 1)
        time.sleep(3)
        begin = time.time()
        os.kill(stopped, signal.SIGSTOP)
        try:
            self.check_failure(process, ["rank 1", "has not answered", "test.mlir:"])
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertLess(time.time() - begin, 2 + 2 + 4)  # mpirun takes its time

    def pid_of(self, process, rank):
        """The process of a rank of mpirun, which may yet have to start it."""
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        end = time.time() + 30
        while time.time() < end:
            for child in children.read_text().split():
                environment = pathlib.Path(f"/proc/{child}/environ").read_bytes()
                if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in environment:
                    return int(child)
            time.sleep(0.1)
        self.fail(f"there is no rank {rank}")

    def start_each(self, *commands):
        """A rank of mpirun each."""
        parts = []
        for command in commands:
            parts += [":"] * bool(parts) + ["-n", "1", *map(str, command)]
        return subprocess.Popen(
            ["mpirun", *parts], cwd=self.folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def test_a_rank_that_dies_is_named(self):
        for rank in 0, 1:
            process = self.start("linear-3.tsr", "--inputs", "in.safetensors", "--steps", 10**9, mpi=3)
            pid = self.pid_of(process, rank)
            time.sleep(3)
            os.kill(pid, signal.SIGKILL)
            self.check_failure(process, [f"rank {rank} died: its process has ended", "test.mlir:"])

    def test_a_rank_that_does_not_come_to_mpi_is_named(self):
        run = [BIN / "tessera-run", "linear-2.tsr", "--inputs", "in.safetensors", "--deadline", 2]
        begin = time.time()
        process = self.start_each(run, ["bash", "-c", 'kill -STOP $$; exec "$@"', "bash", *run])
        self.check_failure(process, ["rank 0 has waited in MPI_Init for 2 s; rank 1 is stopped"])
        self.assertLess(time.time() - begin, 2 + 2 + 4)

    def start_with_temporary(self):
        """Rank 0 has made its output, for which rank 1 has no time."""
        s, w = np.ones((5, 4), np.float32), np.eye(4, dtype=np.float32)
        save_file({"s": s, "w": w}, self.folder / "state.safetensors")
        run = [BIN / "tessera-run", "state-2.tsr", "--inputs", "state.safetensors", "--output", "late"]
        process = self.start_each(run, [*run, "--steps", 10**9])
        while not list(self.folder.glob("late.tmp*")):
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        return process

    def test_temporary_files_go_with_the_job(self):
        for rank, number in (0, signal.SIGTERM), (0, signal.SIGINT), (0, signal.SIGKILL), (1, signal.SIGKILL):
            process = self.start_with_temporary()
            os.kill(self.pid_of(process, rank), number)
            out, err = process.communicate(timeout=20)
            self.assertNotEqual(process.returncode, 0)
            self.assertEqual([p.name for p in self.folder.glob("late.tmp*")], [], (rank, number))
            self.assertFalse((self.folder / "late").exists())
            lines = [line for line in err.splitlines() if line.startswith("tessera:")]
            self.assertEqual(len(lines), 1, err)
            self.assertIn(f"rank {rank} died: its process has ended", lines[0])

    def test_an_error_of_another_rank_leaves_no_file(self):
        s, w = np.ones((5, 4), np.float32), np.eye(4, dtype=np.float32)
        save_file({"s": s, "w": w}, self.folder / "state.safetensors")
        run = [BIN / "tessera-run", "state-2.tsr", "--inputs", "state.safetensors", "--output", "late"]
        process = self.start_each(run, ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", *run])
        self.check_failure(process, ["late: output 's' cannot be written: File too large"])
        self.assertEqual([p.name for p in self.folder.glob("late.tmp*")], [])

    def test_standard_output(self):
        run = ["linear-1.tsr", "--inputs", "in.safetensors"]
        for args in run, ["--help"]:
            for redirection, says in (">/dev/full", "No space left"), (">&-", "closed|Bad file"), ("| :", "Broken pipe"):
                command = ["bash", "-c", f'set -o pipefail; {{ sleep 0.3; exec "$@"; }} {redirection}']
                command += ["bash", str(BIN / "tessera-run"), *args, "--output", "out.safetensors"]
                process = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(process.returncode, 1, process)
                self.assertRegex(process.stderr, f"^tessera: the standard output [^\n]*({says})[^\n]*\n$")

    def test_threads_that_do_not_start(self):
        # 30 TiB of stack for each.
        command = ["bash", "-c", 'ulimit -s 32212254720; exec "$@"', "bash", BIN / "tessera-run"]
        command += ["linear-4.tsr", "--ranks", "8", "--inputs", "in.safetensors"]
        process = subprocess.Popen(
            list(map(str, command)), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.check_failure(process, ["cannot start", "thread", "Resource temporarily unavailable"])

    def test_memory_that_is_not_there(self):
        if b"__asan_init" in (BIN / "tessera-run").read_bytes():
            self.skipTest("a sanitizer needs its own")
        header = ",".join(
            f'"{i:020}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(400_000)
        )
        header = f"{{{header}}}".encode()
        (self.folder / "wide.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
        command = ["bash", "-c", 'ulimit -v 150000; exec "$@"', "bash", BIN / "tessera-run"]
        command += ["linear-1.tsr", "--inputs", "wide.safetensors"]
        process = subprocess.Popen(
            list(map(str, command)), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.check_failure(process, ["not enough memory"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
