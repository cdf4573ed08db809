"""Decode steps with a paged cache in float64 equal NumPy's on any mesh; the cache stays
where it is; what is refused leaves it as it was.

usage: test_decode.py BIN_FOLDER"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from reference import FULL, MOST, NO_PAGE, PAGE, TWICE, UNKNOWN, Reference
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["TESSERA_ROOT"] = str(BIN.parent)
sys.path.insert(0, str(HERE.parents[1] / "python"))
import tessera

SOURCE = (HERE / "step.mlir").read_text().replace("f32", "f64")
SEQUENCES, PAGES, OWN = 5, 16, MOST // PAGE
TOLERANCE = 1e-13
UNWRITTEN = 7.0  # in the pages at first


def start(random):
    shapes = {"q_proj": (64, 16), "k_proj": (32, 16), "v_proj": (32, 16), "o_proj": (16, 64)}
    weights = {name: random.standard_normal(shape) / 4 for name, shape in shapes.items()}
    pages = np.full((PAGES, PAGE, 4, 8), UNWRITTEN)
    return weights, weights | {
        "x": np.zeros((SEQUENCES, 16)), "active": np.zeros(SEQUENCES, np.int32),
        "table": np.full((SEQUENCES, OWN), -1, np.int32),
        "lengths": np.zeros(SEQUENCES, np.int32), "keys": pages, "values": pages}


def schedule(random, reference):
    """Inputs of steps and what they give. The last sequence is never active, the others
    have their lengths. Pages are given as they are needed, in no order; some steps name
    wrong ones."""
    free = list(random.permutation(PAGES))
    table = np.full((SEQUENCES, OWN), -1, np.int32)
    steps = []

    def step(active, table):
        x = random.standard_normal((SEQUENCES, 16))
        y, errors = reference.step(x, active, table)
        lengths = [len(own) for own in reference.cache]
        steps.append(({"x": x, "active": np.int32(active), "table": table.copy()},
                      {"y": y, "errors": errors, "refused": np.count_nonzero(errors),
                       "lengths": lengths}))

    def give(active):
        for i, new in enumerate(active):
            length = len(reference.cache[i])
            if new and length < MOST and table[i, length // PAGE] < 0:
                table[i, length // PAGE] = free.pop()

    for number in range(18):
        active = [1, number % 2, number > 6, number == 3, 0]
        give(active)
        step(active, table)
        if number == 8:
            give([1, 1, 1, 0, 0])
            for row, column, page in ((0, 1, PAGES), (0, 0, -1), (0, 2, table[1, 0]),
                                      (1, 1, table[1, 0]), (2, 0, table[3, 0])):
                wrong = table.copy()
                wrong[row, column] = page
                step([1, 1, 1, 0, 0], wrong)
            for active in ([2, 1, 1, 0, 0], [1, -1, 1, 0, 4], [1, 1, -2**31, 0, 2**31 - 1]):
                step(active, table)
    return steps


def run(program, ranks, inputs, steps):
    """What each step gave on each rank, the cache afterwards, and the memory."""
    def rank(context):
        with context.load(program) as module, module.bind(module.shards(inputs)) as binding:
            before = {name: binding.arrays[name].ctypes.data for name in ("keys", "values")}
            given = []
            for now, expected in steps:
                for name, value in now.items():
                    binding.arrays[name][...] = value
                if expected["refused"]:
                    try:
                        binding.run()
                        raise AssertionError("what is refused is no error")
                    except tessera.Error as error:
                        assert error.code == tessera.Code.DATA, error
                else:
                    binding.run()
                given.append({name: np.array(binding.arrays[name])
                              for name in ("y", "errors", "refused", "lengths")})
            assert before == {name: binding.arrays[name].ctypes.data for name in before}
            cache = {name: (binding.arrays[name].copy(), module.layout(name))
                     for name in ("keys", "values")}
            return module, given, cache, binding.memory, binding.collectives

    return tessera.threads(ranks, rank)


class Decode(unittest.TestCase):
    def test_steps(self):
        for ranks in 1, 2, 3, 4:
            random = np.random.default_rng(0)
            weights, inputs = start(random)
            reference = Reference(weights, SEQUENCES, PAGES)
            steps = schedule(random, reference)
            seen = {error for _, expected in steps for error in expected["errors"]}
            self.assertEqual(seen, {0, FULL, NO_PAGE, TWICE, UNKNOWN})
            self.assertEqual([len(own) for own in reference.cache], [12, 12, 12, 1, 0])
            program = tessera.compile(SOURCE, mesh={"tp": ranks})
            results = run(program, ranks, inputs, steps)
            for _, given, _, _, collectives in results:
                for number, ((_, expected), found) in enumerate(zip(steps, given)):
                    for name, value in expected.items():
                        np.testing.assert_allclose(found[name], value, rtol=0, atol=TOLERANCE,
                                                   err_msg=f"{ranks} ranks, {number}: {name}")
                self.assertEqual([each.kind for each in collectives],
                                 ["all-reduce"] if ranks > 1 else [])
            for number, name in enumerate(("keys", "values")):
                parts, layouts = zip(*(cache[name] for _, _, cache, _, _ in results))
                pages = tessera.assemble(results[0][0], name, parts, layouts)
                expected = inputs[name].copy()
                for place, row in reference.written.items():
                    expected[place] = row[number]
                np.testing.assert_allclose(pages, expected, rtol=0, atol=TOLERANCE)

    def test_lengths(self):
        """Of no cache: nothing is written or seen, the lengths stay, others have their step.
        Nor is a page seen that a sequence does not need."""
        random = np.random.default_rng(2)
        weights, inputs = start(random)
        inputs |= {"x": random.standard_normal((SEQUENCES, 16)),
                   "active": np.int32([1, 1, 1, 1, 0]),
                   "lengths": np.int32([-1, 2**31 - 1, -2**31, 0, MOST + 1]),
                   "table": np.int32([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 0, 15], [10, 11, 12]])}
        keys, values = (np.full_like(inputs["keys"], np.nan) for _ in range(2))
        keys[9] = values[9] = UNWRITTEN
        inputs |= {"keys": keys, "values": values}
        reference = Reference(weights, SEQUENCES, PAGES)
        y, _ = reference.step(inputs["x"], [0, 0, 0, 1, 0], inputs["table"])
        lengths = inputs["lengths"] + np.int32([0, 0, 0, 1, 0])
        steps = [({}, {"y": y, "errors": [FULL, FULL, FULL, 0, FULL], "refused": 4,
                       "lengths": lengths})]
        for ranks in 1, 2:
            program = tessera.compile(SOURCE, mesh={"tp": ranks})
            for _, (given,), cache, _, _ in run(program, ranks, inputs, steps):
                for name, value in steps[0][1].items():
                    np.testing.assert_allclose(given[name], value, rtol=0, atol=TOLERANCE,
                                               err_msg=name)
                for name in "keys", "values":
                    own = np.isfinite(cache[name][0]).all(axis=(2, 3))
                    self.assertEqual(np.argwhere(own).tolist(), [[9, r] for r in range(PAGE)])

    def test_memory(self):
        """Of more pages a step has but a count for each."""
        def memory(pages):
            source = SOURCE.replace("<16x4x4x8x", f"<{pages}x4x4x8x").replace(
                "<64x4x8x", f"<{4 * pages}x4x8x").replace("pages(16)", f"pages({pages})")
            program = tessera.compile(source)
            return tessera.threads(2, lambda context: context.load(program).memory())[0]

        few, many = memory(16), memory(16 + 1024)
        self.assertEqual(many.external - few.external, 1024 * 2 * PAGE * 2 * 8 * 8)
        temporaries = lambda each: each.local + each.symmetric + each.constants
        self.assertLessEqual(temporaries(many) - temporaries(few), 3 * 1024 * 4)

    def test_tool(self):
        """The same by tessera-run, from file to file; a full cache ends the runs."""
        random = np.random.default_rng(1)
        weights, inputs = start(random)
        inputs |= {"x": random.standard_normal((SEQUENCES, 16)),
                   "active": np.int32([1, 0, 1, 0, 0]),
                   "table": np.int32([[3, 9, 4], [5, -1, -1], [0, 15, 7], [-1] * 3, [-1] * 3])}
        reference = Reference(weights, SEQUENCES, PAGES)
        for _ in range(MOST):
            y, _ = reference.step(inputs["x"], inputs["active"], inputs["table"])
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            save_file(inputs, folder / "start")
            tessera.compile(SOURCE, mesh={"tp": 2}).save(folder / "step.tsr")

            def tool(begin, steps, *flags):
                return subprocess.run(
                    [BIN / "tessera-run", "step.tsr", "--ranks", "2", "--inputs", "start",
                     *(["--inputs", begin] if begin else []), "--steps", str(steps),
                     "--report", "json", *flags],
                    cwd=folder, capture_output=True, text=True)

            inputs = {name: inputs[name] for name in inputs
                      if name not in ("lengths", "keys", "values")}
            self.assertEqual(tool(None, 5, "--save", "half").returncode, 0)
            save_file(inputs, folder / "start")
            done = tool("half", MOST - 5, "--output", "end")
            self.assertEqual(done.returncode, 0, done.stderr)
            end = load_file(folder / "end")
            np.testing.assert_allclose(end["y"], y, rtol=0, atol=TOLERANCE)
            self.assertEqual(end["lengths"].tolist(), [MOST, 0, MOST, 0, 0])
            self.assertEqual([each["copies"] for each in json.loads(done.stdout)["collectives"]],
                             [0])
            failed = tool("end", 3, "--save", "beyond")
            self.assertNotEqual(failed.returncode, 0)
            self.assertIn("by another number (4): 'errors' is 1 at [0]", failed.stderr)
            self.assertFalse((folder / "beyond").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
