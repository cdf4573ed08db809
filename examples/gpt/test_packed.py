"""Training on packed documents in float64 has the losses of NumPy, which has each
document on its own, on any mesh; it moves what training on one document a row does.

usage: test_packed.py BIN_FOLDER"""

import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from packed import PackedGPT, PackedProgram, pack
from program import Program, start, text
from reference import loss_and_gradients, train
from train import Training

BIN = pathlib.Path(sys.argv[1]).resolve()
MODEL, TOKENS, STEPS = PackedGPT(), text(), 3
DATA = pack(MODEL, TOKENS)
TOLERANCE = 1e-11


def of_documents(model, weights, data, step, scale):
    """The loss and its gradients in NumPy: each document is a batch of its own."""
    total, found = 0, {name: np.zeros_like(value) for name, value in weights.items()}
    for ids, labels, cu_seqlens in zip(data["ids"], data["labels"], data["cu_seqlens"]):
        for begin, end in zip(cu_seqlens, cu_seqlens[1:]):
            if begin == end:
                continue
            own = weights | {"positions": weights["positions"][:end - begin]}
            loss, gradients = loss_and_gradients(
                model, own, ids[None, begin:end], labels[None, begin:end], step, scale)
            share = (end - begin) / data["ids"].size
            total += share * loss
            for name, gradient in gradients.items():
                found[name][:len(gradient)] += share * gradient
    return total, found


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.losses = train(MODEL, DATA, start(MODEL, np.float64), STEPS, compute=of_documents)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)

    def training(self, name, program, data):
        (self.folder / name).mkdir()
        return Training(BIN, self.folder / name, program, data)

    def test_losses(self):
        packed = self.training("packed", PackedProgram(MODEL, element="f64"), DATA)
        dense = self.training("dense", Program(MODEL, len(TOKENS), element="f64"),
                              {"tokens": TOKENS})
        for mesh in ("tp=1", "tp=2", "tp=3", "tp=4", "dp=2", "dp=3", "dp=2,tp=2"):
            with self.subTest(mesh=mesh):
                losses = packed.run(mesh, STEPS)
                np.testing.assert_allclose(losses, self.losses, rtol=0, atol=TOLERANCE)
                if mesh in ("tp=2", "dp=2", "dp=2,tp=2"):
                    dense.run(mesh, 1)
                    self.assertEqual(moves(packed.report), moves(dense.report))
        for name, value in packed.states("end").items():
            self.assertTrue(np.isfinite(value).all(), name)

    def test_documents_matter(self):
        """One document a row is another loss, by more than the tolerance."""
        whole = DATA | {"cu_seqlens": np.where(DATA["cu_seqlens"] == 0, 0,
                                               MODEL.length).astype(np.int32)}
        other = train(MODEL, whole, start(MODEL, np.float64), STEPS, compute=of_documents)
        self.assertGreater(np.abs(np.subtract(other, self.losses)).max(), 1e4 * TOLERANCE)

    def test_wrong(self):
        """What no row of documents is ends the training, and nothing is saved."""
        for name, place, value, code in (("falls", (1, 2), 0, 1), ("beyond", (3, 5), 193, 2),
                                         ("before", (0, 0), -1, 2)):
            data = DATA | {"cu_seqlens": DATA["cu_seqlens"].copy()}
            data["cu_seqlens"][1, 1] = 1
            data["cu_seqlens"][place] = value
            training = self.training(name, PackedProgram(MODEL, element="f64"), data)
            error = (r"run 1: \S+step.mlir:\d+:\d+: cu_seqlens fall \(1\), or are not among the "
                     rf"tokens \(2\): 'wrong' is {code} at \[{place[0]}, {place[1]}\]")
            for mesh in "dp=2", "tp=2":
                with self.subTest(name=name, mesh=mesh), \
                        self.assertRaisesRegex(RuntimeError, error):
                    training.run(mesh, 2)
            self.assertFalse((self.folder / name / "end.safetensors").exists())

    def test_one_list(self):
        """Of tiles, where a GPU has one row, however many layers there are."""
        for layers in 1, 4:
            program = self.folder / f"{layers}.mlir"
            model = dataclasses.replace(MODEL, layers=layers, width=128, heads=2)
            program.write_text(str(PackedProgram(model, element="bf16")))
            for mesh, lists in ("dp=4,tp=2", 1), ("dp=2,tp=2", 0):
                options = f"to=kernels mesh={mesh} target=cuda:sm_90a attention=flash"
                kernels = subprocess.run(
                    [BIN / "tessera-opt", program, f"--tessera={options}"],
                    capture_output=True, text=True, check=True).stdout
                for op, times in (("packed_tiles", lists), ("attention", layers),
                                  ("attention_grad", layers)):
                    launches = rf"= plan\.launch @{op}_\d+\("
                    self.assertEqual(len(re.findall(launches, kernels)), times, (mesh, op))


def moves(report):
    """A slice moves nothing."""
    return [(each["kind"], each["sent"]) for each in report["collectives"]
            if each["kind"] != "slice"]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
