"""What the tests of tessera-run share: a folder of modules written by hand, and ways to
run them.

arguments of each: BIN_FOLDER MPI_ENVIRONMENT_FILE FAKES BLAS

FAKES: a folder with a CUDA driver and an NCCL that need no GPU.
BLAS: a folder with a driver and a cuBLASLt."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from safetensors.numpy import load_file, save_file

BIN = pathlib.Path(sys.argv[1]).resolve()
ENVIRONMENT = dict(os.environ)
for line in pathlib.Path(sys.argv[2]).read_text().splitlines():
    if not line.startswith("#"):
        ENVIRONMENT.update([line.split("=", 1)])

FAKES, BLAS = sys.argv[3:5]

RNG = np.random.default_rng(1)
X = RNG.standard_normal((5, 10)).astype(np.float32)
W = RNG.standard_normal((6, 10)).astype(np.float32)


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-run-"))
        subprocess.run([BIN / "make-modules", cls.folder], check=True)
        save_file({"x": X, "w": W}, cls.folder / "in.safetensors")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def start(self, *args, mpi=None, **environment):
        command = ["mpirun", "-n", str(mpi)] if mpi else []
        command += [str(BIN / "tessera-run"), *map(str, args)]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=dict(ENVIRONMENT, **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def succeed(self, *args, mpi=None, **environment):
        process = self.start(*args, mpi=mpi, **environment)
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        return out

    def check_failure(self, process, parts):
        """One line of ours, with all `parts`, on standard error."""
        out, err = process.communicate(timeout=100)
        self.assertNotEqual(process.returncode, 0, out)
        lines = [line for line in err.splitlines() if line.startswith("tessera:")]
        self.assertEqual(len(lines), 1, err)
        for part in parts:
            self.assertIn(part, lines[0])
        if process.args[0] != "mpirun":
            self.assertEqual(err.count("\n"), 1, err)

    def fail_with(self, *args, says, mpi=None):
        self.check_failure(self.start(*args, mpi=mpi), says)

    def check_result(self, name="y", file="out.safetensors"):
        result = load_file(self.folder / file)
        self.assertEqual(list(result), [name])
        np.testing.assert_allclose(result[name], X @ W.T, rtol=1e-5, atol=1e-5)
        self.assertEqual([p.name for p in self.folder.glob(file + ".*")], [])
        (self.folder / file).unlink()
