"""The training of the GPT in float64 has the losses of NumPy, on any mesh and from what
another mesh saved; two runs have the same bits.

usage: test_training.py BIN_FOLDER [--all]
--all: 200 steps on each mesh"""

import collections
import dataclasses
import pathlib
import re
import sys
import tempfile
import unittest

import numpy as np
from program import GPT, Program, start, text
from reference import train
from train import Training

BIN = pathlib.Path(sys.argv[1]).resolve()
ALL = sys.argv[2:] == ["--all"]
STEPS = 200 if ALL else 60
MODEL, TOKENS = GPT(), text()
TOLERANCE = 1e-11  # of NumPy from a start that differs by 1e-15: 7e-14


class Rounded(np.ndarray):
    """f32 whose results are rounded to the type of a subclass, each."""

    def __array_ufunc__(self, function, method, *inputs, out=(), **options):
        inputs = [np.asarray(each) for each in inputs]
        result = getattr(function, method)(*inputs, **options)
        result = inputs[0] if method == "at" else result
        if result.dtype.kind == "f":
            result = self.round(np.asarray(result, np.float32)).view(type(self))
        if method == "at":
            inputs[0][...] = result
        for each in out:
            np.asarray(each)[...] = result
        return out[0] if out else result


class BFloat16(Rounded):
    @staticmethod
    def round(value):
        bits = value.view(np.uint32)
        bits = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32)


class Float16(Rounded):
    @staticmethod
    def round(value):
        return value.astype(np.float16).astype(np.float32)


class TrainingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.losses = train(MODEL, TOKENS, start(MODEL, np.float64), STEPS)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def training(self, name="plain", model=MODEL, memory=None, **options):
        (self.folder / name).mkdir()
        program = Program(model, len(TOKENS), **{"element": "f64"} | options)
        return Training(BIN, self.folder / name, program, {"tokens": TOKENS}, memory)

    def check(self, losses, expected):
        np.testing.assert_allclose(losses, expected, rtol=0, atol=TOLERANCE)

    def assert_same(self, states, others):
        self.assertEqual(states.keys(), others.keys())
        for name, state in states.items():
            self.assertEqual(state.tobytes(), others[name].tobytes(), name)

    def test_it_goes_on(self):
        half, training = STEPS // 2, self.training()
        self.check(training.run("dp=2,tp=2", STEPS, "start", "whole"), self.losses)
        first = training.run("dp=2,tp=2", half, "start", "half")
        self.check(first, self.losses[:half])
        rest = training.run("dp=2,tp=2", STEPS - half, "half", "rest")
        self.check(rest, self.losses[half:])
        self.assert_same(training.states("whole"), training.states("rest"))
        self.check(training.run("tp=3", STEPS - half, "half", mpi=True), self.losses[half:])

    def test_zero(self):
        """Each weight is gathered, and its gradient scattered: no more moves."""
        training, sent = self.training(zero=True), collections.Counter()
        self.check(training.run("dp=2", STEPS), self.losses)
        for each in training.report["collectives"]:
            sent[each["kind"]] += each["sent"]
        self.assertEqual(sent["all-gather"], sent["reduce-scatter"])
        self.assertLess(sum(sent.values()) - 2 * sent["all-gather"], sent["all-gather"] / 50, sent)

    def test_dropout(self):
        """The same masks on any mesh, in both directions, and when it goes on; others each
        step."""
        model, half = dataclasses.replace(MODEL, dropout=0.1), STEPS // 2
        expected = train(model, TOKENS, start(model, np.float64), STEPS)
        training = self.training(model=model)
        self.check(training.run("dp=2,tp=2", STEPS, "start", "whole"), expected)
        self.check(training.run("dp=2,tp=2", half, "start", "half"), expected[:half])
        self.check(training.run("dp=2,tp=2", STEPS - half, "half", "rest"), expected[half:])
        self.assert_same(training.states("whole"), training.states("rest"))
        self.check(training.run("tp=3", STEPS - half, "half"), expected[half:])

    def test_memory(self):
        """12 layers in all of the memory that they take, and in less: what the compiler
        says, and the same bits."""
        model, steps = dataclasses.replace(MODEL, layers=12), 2
        whole = self.training(model=model)
        losses = whole.run("tp=1", steps)
        def held(training):
            return training.report["memory"]["local"] + training.report["memory"]["symmetric"]
        for share in 100, 60, 35:
            with self.subTest(share=share):
                budget = held(whole) * share // 100
                training = self.training(str(share), model=model, memory=budget)
                self.assertEqual(training.run("tp=1", steps), losses)
                said = int(re.search(r"holds (\d+) bytes at most", training.remarks)[1])
                self.assertEqual(said, held(training))
                self.assertLessEqual(said, budget)
                again = len(re.findall(r" runs again", training.remarks))
                self.assertEqual(again > 0, share < 100)
                self.assert_same(whole.states("end"), training.states("end"))

    def test_memory_of_several(self):
        """Weights are gathered once more for the backward."""
        steps, whole = 3, self.training(sequence=True, zero=True)
        whole.run("dp=2,tp=2", steps)
        def gathers(training):
            return [each["kind"] for each in training.report["collectives"]].count("all-gather")
        budget = sum(whole.report["memory"][each] for each in ("local", "symmetric")) * 6 // 10
        training = self.training("less", sequence=True, zero=True, memory=budget)
        self.check(training.run("dp=2,tp=2", steps), self.losses[:steps])
        self.assertGreater(gathers(training), gathers(whole))

    def check_rounded(self, cast, **options):
        """Within 4 times what NumPy that rounds is off by."""
        rounded = train(MODEL, TOKENS, start(MODEL, np.float32), STEPS, cast)
        allowed = 4 * np.abs(np.subtract(rounded, self.losses)).max()
        training = self.training(element="f32", **options)
        for mesh in "tp=1", "dp=2,tp=2":
            losses = training.run(mesh, STEPS)
            self.assertLess(np.abs(np.subtract(losses, self.losses)).max(), allowed, mesh)

    def test_f32(self):
        self.check_rounded(lambda value: value)

    def test_bf16_with_f32_states(self):
        self.check_rounded(lambda value: value.view(BFloat16) * 1, compute="bf16")

    def test_f16_with_a_scale(self):
        """From a scale that is too large: steps that overflow change nothing but halve it,
        on all ranks, and after 8 that do not it doubles; as NumPy that rounds to f16."""
        model, steps = dataclasses.replace(MODEL, scale=2.0**30, patience=8), STEPS // 2
        states = start(model, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = train(model, TOKENS, states, steps, lambda value: value.view(Float16) * 1)
        self.assertLess(len(rounded), steps - 8)
        allowed = 4 * np.abs(np.subtract(rounded, self.losses[:len(rounded)])).max()
        training = self.training(model=model, element="f32", compute="f16")
        for mesh in "dp=2", "tp=2":
            with self.subTest(mesh=mesh):
                losses = training.run(mesh, steps)
                off = np.abs(np.subtract(losses, self.losses[:len(losses)])).max()
                self.assertLess(off, allowed)
                end = training.states("end")
                for name in "step", "good", "loss_scale":
                    self.assertEqual(end[name], states[name], name)

    def test_it_learns(self):
        self.assertLess(self.losses[-1], 2.8 if ALL else 3.0)

    @unittest.skipUnless(ALL, "--all")
    def test_every_mesh(self):
        for name, options, meshes in (
                ("plain", {}, ("tp=1", "tp=2", "tp=3", "tp=4", "dp=2", "dp=3", "dp=2,tp=2")),
                ("sequence", {"sequence": True}, ("tp=2", "tp=3", "tp=4", "dp=2,tp=2")),
                ("zero", {"zero": True}, ("dp=2", "dp=3", "dp=2,tp=2")),
                ("both", {"sequence": True, "zero": True}, ("dp=2,tp=2",))):
            training = self.training(name, **options)
            for mesh in meshes:
                with self.subTest(name=name, mesh=mesh):
                    self.check(training.run(mesh, STEPS), self.losses)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
