"""The MiniLM program under every mesh of 1 to 6 devices equals the float64
reference within 1e-5, and one module takes other batches and lengths.

usage: test_encoder.py BIN_FOLDER MODEL_FOLDER"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from prepare import read_sentences, tokenize
from reference import embed
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.argv[1]).resolve()
MODEL = pathlib.Path(sys.argv[2]).resolve()
TOLERANCE = 1e-5


class Encoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.weights = load_file(MODEL / "model.safetensors")
        cls.sentences = read_sentences(HERE / "sentences.txt")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def compile(self, ranks):
        module = self.folder / f"minilm-{ranks}.tsr"
        if not module.exists():
            command = [BIN / "tessera-compile", HERE / "encoder.mlir", f"--mesh=tp={ranks}", "-o", module]
            subprocess.run(command, check=True)
        return module

    def check(self, ranks, inputs, launcher=(), flags=()):
        save_file(inputs, self.folder / "inputs.safetensors")
        output = self.folder / "output.safetensors"
        command = [*launcher, BIN / "tessera-run", self.compile(ranks), *flags]
        command += ["--inputs", MODEL / "model.safetensors"]
        command += ["--inputs", self.folder / "inputs.safetensors", "--output", output]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        result = load_file(output)["embeddings"]
        reference = embed(self.weights, inputs["ids"], inputs["mask"])
        np.testing.assert_allclose(result, reference, rtol=0, atol=TOLERANCE)

    def test_every_mesh(self):
        inputs = tokenize(MODEL, self.sentences)
        for ranks in range(1, 7):
            with self.subTest(ranks=ranks):
                self.check(ranks, inputs, flags=["--ranks", str(ranks)])

    def test_mpirun(self):
        inputs = tokenize(MODEL, self.sentences)
        self.check(4, inputs, launcher=["mpirun", "-n", "4"])

    def test_one_module_takes_any_size(self):
        long = " ".join(self.sentences * 5)
        for sentences in ([self.sentences[0]], ["Yes."] * 64, [long, self.sentences[3]]):
            inputs = tokenize(MODEL, sentences)
            with self.subTest(shape=inputs["ids"].shape):
                self.check(4, inputs, flags=["--ranks", "4"])

    def test_beyond_the_maximum_is_an_error(self):
        inputs = tokenize(MODEL, ["Yes."] * 65)
        save_file(inputs, self.folder / "inputs.safetensors")
        command = [BIN / "tessera-run", self.compile(4), "--ranks", "4"]
        command += ["--inputs", MODEL / "model.safetensors"]
        command += ["--inputs", self.folder / "inputs.safetensors"]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stderr, "tessera: size b = 65 is above its declared maximum 64\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
