"""Drives tessera-run over modules written by hand: results, reports, and every
kind of bad input, each of which must end in one line and a status that is not 0.

usage: test_tessera_run.py BIN_FOLDER MPI_ENVIRONMENT_FILE FAKES BLAS"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import numpy as np
from safetensors.numpy import load_file, save_file

from runs import BIN, ENVIRONMENT, FAKES, BLAS, RNG, X, W, Runs


class TesseraRun(Runs):
    # Results

    def test_one_rank(self):
        out = self.succeed(
            "linear-1.tsr", "--inputs", "in.safetensors", "--output", "out.safetensors"
        )
        self.assertIn("linear-1.tsr: 1 rank, mesh <tp = 1>, b = 5", out)
        self.check_result()

    def test_threads(self):
        for ranks in (1, 2, 3, 4):
            out = self.succeed(
                f"linear-{ranks}.tsr",
                "--ranks", ranks,
                "--transport=threads",
                "--inputs=in.safetensors",
                "--size", "b=5",
                "--output=out.safetensors",
            )  # fmt: skip
            self.check_result()
            self.assertIn("wrote out.safetensors", out)
            if ranks > 1:
                row = next(line for line in out.splitlines() if "all-reduce" in line)
                self.assertIn("test.mlir:2:1", row)
                self.assertIn("exchange, 999 bytes, 12.0 us", row)

    def test_variants(self):
        run = ["choice-1.tsr", "--inputs", "in.safetensors"]
        for allowed, line in [
            ([], "attention: math 1, flash 1"),
            (["--attention=flash,math"], "attention: math 1, flash 1"),
            (["--attention=math"], "attention: math 2, flash 0"),
        ]:
            out = self.succeed(*run, *allowed, "--output", "out.safetensors")
            self.assertIn(line, out.splitlines())
            self.check_result()
        report = json.loads(self.succeed(*run, "--report=json"))
        self.assertEqual(
            report["choices"][1],
            {
                "kind": "attention",
                "op": "tv.attention",
                "location": "choice.mlir:2:1",
                "chosen": "flash",
                "variants": ["flash", "math"],
            },
        )
        # The module to compare with is under no such order.
        self.succeed(*run, "--attention=math", "--verify", "choice-1.tsr")
        self.fail_with(
            *run,
            "--attention=flash",
            says=[
                "choice.mlir:1:1: 'tv.attention': no variant of attention that is "
                "allowed is there: flash: it is too wide; there is math"
            ],
        )
        self.fail_with(
            *run,
            "--attention=fast",
            says=["--attention: 'fast' is no variant", "'flash', 'cudnn' and 'math'"],
        )
        self.fail_with(*run, "--attention=", says=["variants like flash,math"])
        self.fail_with(
            *run,
            "--attention=math",
            "--matmul=flash",
            says=["--matmul: 'flash' is no variant of matmul"],
        )
        # A flag that nothing in the module heeds is a mistake.
        self.fail_with(
            *run,
            "--attention=math",
            "--matmul=own",
            says=[
                "--matmul=own: 'choice-1.tsr' leaves no variant of matmul to choose; "
                "compile it for cuda with --matmul=own,cublaslt"
            ],
        )
        for ranks in ["--ranks=2"], []:
            self.fail_with(
                "linear-2.tsr", "--inputs", "in.safetensors", "--attention", "math,flash", *ranks,
                mpi=None if ranks else 2,
                says=[
                    "--attention=math,flash: 'linear-2.tsr' leaves no variant of "
                    "attention to choose; it has no attention"
                ],
            )  # fmt: skip
        # On a GPU they are among what the bits depend on.
        fakes = {"TESSERA_CUDA_LIBRARY_PATH": FAKES, "NCCL_NVLS_ENABLE": "0"}
        run = ["turn-cuda-2.tsr", "--ranks=2", "--inputs", "in.safetensors", "--verify", "turn-2.tsr"]
        self.assertRegex(self.succeed(*run, **fakes), r"\n +attention +flash 1, math 0\n")
        out = self.succeed(*run, "--attention=math", "--steps=2", **fakes)
        self.assertRegex(out, r"\n +attention +flash 0, math 1\n")

    def test_mpi(self):
        for ranks in (2, 4):
            self.succeed(
                f"linear-{ranks}.tsr",
                "--inputs", "in.safetensors",
                "--output", "out.safetensors",
                mpi=ranks,
            )  # fmt: skip
            self.check_result()

    def test_collectives_report(self):
        out = self.succeed(
            "linear-2.tsr", "--ranks", 2, "--inputs", "in.safetensors", "--report", "collectives"
        )  # fmt: skip
        title, unit, header, row = out.splitlines()
        self.assertIn("2 ranks", title)
        self.assertNotIn("time", header)
        self.assertEqual(row.split()[:5], ["all-reduce", "[tp]", "120", "120", "0"])
        # The module says for the largest sizes what was not done: figures of these, if
        # the planner knows it.
        self.assertTrue(row.endswith("  exchange, 999 bytes, 12.0 us at the largest sizes"))
        out = self.succeed("turn-2.tsr", "--ranks=2", "--inputs", "in.safetensors", "--report=collectives")
        self.assertRegex(out, r"all-gather .*  exchange, 100 bytes, 5\.0 us\n")

    def test_json_report(self):
        out = self.succeed(
            "linear-2.tsr", "--ranks", 2, "--inputs", "in.safetensors", "--report", "json", "--steps", 3
        )
        report = json.loads(out)
        self.assertEqual(report["ranks"], 2)
        self.assertEqual(report["sizes"], {"b": 5})
        self.assertEqual(report["seconds"]["runs"], 3)
        self.assertLessEqual(report["seconds"]["min"], report["seconds"]["median"])
        self.assertLessEqual(report["seconds"]["median"], report["seconds"]["max"])
        (collective,) = report["collectives"]
        self.assertEqual(collective["kind"], "all-reduce")
        self.assertEqual(collective["sent"], 5 * 6 * 4)  # halves out, halves in
        self.assertEqual(collective["location"], "test.mlir:2:1")
        self.assertEqual(report["memory"]["external"], 4 * (5 * 5 + 6 * 5 + 5 * 6))

    def test_trace(self):
        for ranks in (1, 2):
            self.succeed(
                f"linear-{ranks}.tsr", "--ranks", ranks, "--inputs", "in.safetensors", "--trace", "t.json"
            )  # fmt: skip
            spans = self.check_trace(ranks, steps=2)
            product, collective = spans[0, 0], spans[0, 1]
            self.assertEqual([e["name"] for e in product], ["tv.matmul"])
            self.assertEqual(product[0]["args"]["kind"], "product")
            self.assertEqual([e["name"] for e in collective], ["all-reduce [tp]"])
            args = collective[0]["args"]
            self.assertEqual(args["bytes_sent"], 120 if ranks == 2 else 0)
            self.assertEqual((args["op"], args["location"]), ("tv.reshard", "test.mlir:2:1"))

    def test_trace_of_processes(self):
        self.succeed("linear-2.tsr", "--inputs", "in.safetensors", "--trace", "t.json", mpi=2)
        self.check_trace(2, steps=2)

    def check_trace(self, ranks, steps, host=False):
        """The file against the Trace Event Format and what there is to show: spans by
        process and track."""
        trace = json.loads((self.folder / "t.json").read_text())
        errors = trace["otherData"]["clock_error_us"]
        self.assertEqual(len(errors), ranks)
        self.assertLess(max(errors), 1e5)
        processes, tracks, spans = {}, {}, {}
        for event in trace["traceEvents"]:
            self.assertIs(type(event["pid"]), int)
            if event["ph"] == "M":
                kinds = {"process_name": processes, "thread_name": tracks}
                if event["name"] in kinds:
                    key = (event["pid"], event.get("tid"))
                    self.assertNotIn(key, kinds[event["name"]])
                    kinds[event["name"]][key] = event["args"]["name"]
                else:
                    self.assertRegex(event["name"], "^(process|thread)_sort_index$")
                    self.assertIs(type(event["args"]["sort_index"]), int)
                continue
            self.assertEqual(event["ph"], "X")
            self.assertIs(type(event["tid"]), int)
            for text in ("name", "cat"):
                self.assertTrue(event[text])
            for number in ("ts", "dur"):
                self.assertGreaterEqual(event[number], 0)
            spans.setdefault((event["pid"], event["tid"]), []).append(event)
        self.assertEqual(min(e["ts"] for track in spans.values() for e in track), 0)
        self.assertEqual(set(processes), {(rank, None) for rank in range(ranks)})
        for (rank, _), name in processes.items():
            self.assertTrue(name.startswith(f"rank {rank}, "), name)
        self.assertEqual(
            set(tracks), {(rank, track) for rank in range(ranks) for track in range(2 + host)}
        )
        self.assertLessEqual(set(spans), set(tracks))
        for track in spans.values():
            for one, next in zip(track, track[1:]):
                self.assertLessEqual(one["ts"] + one["dur"], next["ts"] + 1e-6)
        for rank in range(ranks):
            shown = spans.get((rank, 0), []) + spans.get((rank, 1), [])
            self.assertEqual(sorted(e["args"]["step"] for e in shown), list(range(steps)))
            for event in shown:
                self.assertRegex(event["args"]["location"], r"^test.mlir:\d+:1$")
                self.assertIn(event["args"]["kind"], ("kernel", "product", "collective", "copy"))
                self.assertEqual(event["tid"], int(event["args"]["kind"] == "collective"))
            # One thing after the other, on the two tracks together too.
            shown.sort(key=lambda e: e["args"]["step"])
            for one, next in zip(shown, shown[1:]):
                self.assertLessEqual(one["ts"] + one["dur"], next["ts"] + 1e-6)
            if host:
                enqueued = spans[rank, 2]
                self.assertEqual([e["args"]["step"] for e in enqueued], list(range(steps)))
                for event, span in zip(enqueued, shown):
                    self.assertLessEqual(event["ts"], span["ts"] + span["dur"] + errors[rank])
        # One axis: what all ranks take part in ends on none before it began on all.
        for step in range(steps):
            same = [e for (_, tid), track in spans.items() for e in track
                    if tid == 1 and e["args"]["step"] == step]  # fmt: skip
            if same and same[0]["args"]["bytes_sent"]:
                begin = max(e["ts"] for e in same)
                end = min(e["ts"] + e["dur"] for e in same)
                self.assertLessEqual(begin, end + 1 + 2 * max(errors))
        return spans

    def test_verify(self):
        for ranks in (1, 2):
            out = self.succeed(
                f"linear-{ranks}.tsr", "--ranks", ranks, "--inputs", "in.safetensors",
                "--verify", f"linear-{ranks}.tsr",
            )  # fmt: skip
            self.assertRegex(out, r"\n  y +f32 +0 +- +0 +- +0 +- +-\n")
            self.assertRegex(out, r"allowed is 4 x .* of f32, .* \+ %d x eps" % (2 * ranks - 2))
        process = self.start(
            "linear-1.tsr", "--inputs", "in.safetensors", "--verify", "squared-1.tsr"
        )
        out, err = process.communicate(timeout=100)
        self.assertNotEqual(process.returncode, 0)
        here, there = X @ W.T, X @ W.T @ W[:, :6].T
        (where,) = re.findall(r"'y' differs from cpu at \[(\d), (\d)\]: it is (\S+), cpu has (\S+),", err)
        index = tuple(map(int, where[:2]))
        self.assertAlmostEqual(float(where[2]), here[index], places=4)
        self.assertAlmostEqual(float(where[3]), there[index], places=4)
        self.assertIn("30 of 30 elements", err)
        # The report says where the largest is.
        largest = np.unravel_index(np.abs(here - there).argmax(), here.shape)
        self.assertIn("[{}, {}]".format(*largest), out)

    def verify(self, mine, reference, ranks, cuda=False, *more):
        """What comparing `mine` with `reference`, [5, 6], gives: JSON and error."""
        save_file({"other": mine, "z": reference}, self.folder / "pick.safetensors")
        dtype = {"float32": "f32", "float16": "f16", "int32": "i32"}[mine.dtype.name]
        fakes = {"TESSERA_CUDA_LIBRARY_PATH": FAKES, "NCCL_NVLS_ENABLE": "0"} if cuda else {}
        process = self.start(
            f"{'cuda-' if cuda else ''}other-{dtype}-{ranks}.tsr", "--verify", f"z-{dtype}-{ranks}.tsr",
            "--inputs", "pick.safetensors", "--ranks", ranks, "--report=json", **fakes,
        )  # fmt: skip
        out, err = process.communicate(timeout=100)
        report = json.loads(out)["verify"]["outputs"][0]
        self.assertEqual(process.returncode != 0, bool(err), err)
        self.assertEqual(report["elements"], 30)
        self.assertEqual(report["wrong"] > 0, bool(err))
        return report, err

    def test_verify_finds_one_element(self):
        for ranks, cuda in ((1, False), (2, False), (2, True)):
            z = RNG.standard_normal((5, 6)).astype(np.float32)
            report, err = self.verify(z, z, ranks, cuda)
            self.assertEqual((report["of_allowed"], err), ({"value": 0}, ""))
            # Roundings are allowed,
            near = z * np.float32(1 + 2**-22)
            report, err = self.verify(near, z, ranks, cuda)
            self.assertEqual(err, "")
            self.assertTrue(0 < report["of_allowed"]["value"] < 1, report)
            error = np.abs(near.astype(np.float64) - z)
            self.assertEqual(report["difference"]["at"], list(np.unravel_index(error.argmax(), z.shape)))
            self.assertAlmostEqual(report["difference"]["value"], error.max())
            self.assertLess(report["of_allowed"]["allowed"], 1e-4)
            # and nothing else is.
            for wrong in (1e-3, np.inf, -np.inf, np.nan):
                other = near.copy()
                other[3, 4] += np.float32(wrong)
                report, err = self.verify(other, z, ranks, cuda)
                self.assertIn("'y' differs from cpu at [3, 4]: it is ", err)
                self.assertIn("1 of 30 elements", err)
                self.assertEqual(report["wrong"], 1)
                for worst in ("difference", "relative", "of_allowed"):
                    if worst != "relative" or not np.isfinite(wrong):
                        self.assertEqual(report[worst]["at"], [3, 4])
            # What is no number on both sides is equal.
            z[1, 2], z[0, 5], z[4, 4] = np.nan, np.inf, -np.inf
            report, err = self.verify(z, z, ranks, cuda)
            self.assertEqual(err, "")
            other = z.copy()
            other[0, 5] = -np.inf
            self.assertIn("at [0, 5]: it is -inf, cpu has inf", self.verify(other, z, ranks, cuda)[1])

    def test_verify_knows_types(self):
        z = RNG.standard_normal((5, 6))
        half = z.astype(np.float16)
        single = z.astype(np.float32)
        self.assertEqual(self.verify(half * np.float16(1.001), half, 2)[1], "")
        self.assertIn("differs", self.verify(single * np.float32(1.001), single, 2)[1])
        half[4, 5] += np.float16(1)
        self.assertIn("at [4, 5]", self.verify(z.astype(np.float16), half, 2)[1])
        whole = np.arange(30, dtype=np.int32).reshape(5, 6)
        self.assertEqual(self.verify(whole, whole, 2)[1], "")
        other = whole.copy()
        other[0, 3] += 1
        report, err = self.verify(other, whole, 2)
        self.assertIn("at [0, 3]: it is 4, cpu has 3, which may differ by 0; 1 of 30", err)

    def test_verify_needs_the_same_program(self):
        z = np.zeros((5, 6), np.float32)
        save_file({"other": z, "z": z}, self.folder / "pick.safetensors")
        for mine, other, says in (
            ("linear-2", "state-2", "it has no input 'x'"),
            ("linear-1", "turn-1", "it has no input 'w'"),
            ("only-z-f32-1", "z-f32-1", "it has an input 'other', which this one has not"),
            ("z-f32-1", "z-f16-1", "input 'z' is f16 [5, 6] in it; here it is f32 [5, 6]"),
            ("z-f32-2", "whole-z-f32-2", "input 'z' lies as [5, 6] in it; here it lies as [5, did(tp) * 3]"),
            ("z-f32-1", "nothing", "nothing.tsr"),
            ("z-f32-1", "z-f32-2", "mesh"),
            ("z-f32-1", "cuda-other-f32-1", "the module is compiled for cuda:sm_90a; this context runs cpu"),
        ):
            ranks = mine[-1]
            files = "pick.safetensors" if "z-" in mine else "in.safetensors"
            self.fail_with(
                f"{mine}.tsr", "--ranks", ranks, "--inputs", files, "--verify", f"{other}.tsr",
                "--steps", 10**9,  # before anything runs
                says=[f"--verify '{other}.tsr': ", says],
            )  # fmt: skip

    def test_verbose(self):
        process = self.start("linear-1.tsr", "--inputs", "in.safetensors", "--verbose")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("tessera-run: rank 0: step 1, 'tv.reshard' at test.mlir:2:1", err)

    def test_backend(self):
        self.fail_with(
            "cuda-1.tsr", "--inputs", "in.safetensors", "--backend", "cpu",
            says=["the module is compiled for cuda:sm_90a; this context runs cpu"],
        )  # fmt: skip
        self.fail_with("cuda-1.tsr", "--backend", "tpu", says=["there is no backend 'tpu'", "cuda"])
        self.fail_with("cuda-1.tsr", "--device", "-1", says=["ordinal"])
        for flag in ("--device=4", "--no-graph", "--symmetric", "--copy-engines", "--autotune=kept", "--algorithms=kept"):
            self.fail_with(
                "linear-2.tsr", "--ranks=2", "--inputs", "in.safetensors", flag,
                says=[flag.split("=")[0] + " is for modules that are compiled for cuda; 'linear-2.tsr' is compiled for cpu"],
            )  # fmt: skip

    def test_cuda_without_a_gpu(self):
        fakes = {"TESSERA_CUDA_LIBRARY_PATH": FAKES, "NCCL_NVLS_ENABLE": "0"}
        for ranks in (1, 2):
            for more in ([], ["--no-graph"], ["--trace", "t.json"], ["--verbose"]):
                out = self.succeed(
                    f"turn-cuda-{ranks}.tsr", "--ranks", ranks, "--inputs", "in.safetensors",
                    "--output", "out.safetensors", "--verify", f"turn-{ranks}.tsr",
                    "--steps", 3, *more, **fakes,
                )  # fmt: skip
                y = load_file(self.folder / "out.safetensors")["y"]
                np.testing.assert_array_equal(y, X.T)
                if "--trace" in more:
                    spans = self.check_trace(ranks, steps=2, host=True)
                    self.assertEqual([e["name"] for e in spans[0, 1]], ["all-gather [tp]"])
                    self.assertEqual([e["args"]["kind"] for e in spans[0, 0]], ["copy"])
                self.assertRegex(out, r"module +[0-9a-f]{16}, cuda:sm_90a")
                gpus = "0, 1" if ranks == 2 else "0"
                libraries = ", NCCL 2.28.9" if ranks == 2 else ""
                self.assertRegex(out, rf"GPU {gpus} +Fake GPU, driver \(CUDA 13.0\){libraries}\n")
                self.assertRegex(out, r"\n  y +f32 +0 +- +0 +- +0 +- +-\n")
                host = ", enqueueing each step of 3 runs: min"
                if not more:  # the first run enqueues each step
                    host = " after the first run, launching a CUDA graph of 2 runs: min"
                self.assertIn("host time" + host, out)
        report = json.loads(
            self.succeed("turn-cuda-1.tsr", "--inputs", "in.safetensors", "--report=json", "--steps=2", **fakes)
        )
        self.assertEqual(report["target"], "cuda:sm_90a")
        self.assertNotIn("seconds", report["collectives"][0])  # not measured in a graph
        self.assertEqual(report["graph"], True)
        self.assertEqual((report["seconds"]["runs"], report["host_seconds"]["runs"]), (2, 1))
        process = self.start(
            "turn-cuda-1.tsr", "--inputs", "in.safetensors", "--device", "999", **fakes
        )
        self.check_failure(process, ["there is no GPU 999"])
        process = self.start("turn-1.tsr", "--inputs", "in.safetensors", "--backend=cuda", **fakes)
        self.check_failure(process, ["the module is compiled for cpu; this context runs cuda:sm_90a"])

    def test_communicators(self):
        fakes = {"TESSERA_CUDA_LIBRARY_PATH": FAKES, "NCCL_NVLS_ENABLE": "0"}
        x = RNG.standard_normal((8, 8)).astype(np.float32)
        save_file({"x": x}, self.folder / "x8.safetensors")
        args = ("axes-cuda-4.tsr", "--ranks", 4, "--inputs", "x8.safetensors", "--verify", "axes-4.tsr")
        out = self.succeed(*args, **fakes)
        begin = out.index("3 communicators of NCCL")
        rows = [re.split("  +", line.strip()) for line in out[begin:].splitlines()[2:5]]
        # From 8 rows of 32 bytes a rank sends its 2 to one, then 4 to one; in the
        # exchange 2 x 2 elements to each of three.
        self.assertEqual(
            [row[:7] for row in rows],
            [
                ["[0, 1, 2, 3]", "1", "[dp, tp]", "1", "6", "48", "48"],
                ["[0, 1]", "2", "[tp]", "1", "1", "64", "64"],
                ["[0, 2]", "2", "[dp]", "1", "1", "128", "128"],
            ],
        )
        self.assertEqual([row[-1] for row in rows], ["the first", "part of the first", "part of the first"])
        report = json.loads(self.succeed(*args, "--report", "json", **fakes))
        self.assertEqual([c["ranks"] for c in report["communicators"]], [row[0] for row in rows])
        # What ran is what was planned.
        self.assertEqual(sum(c["sent"] for c in report["communicators"]),
                         sum(c["sent"] for c in report["collectives"]))  # fmt: skip
        self.assertRegex(report["hash"], "^[0-9a-f]{16}$")
        self.assertEqual([d["ordinal"] for d in report["devices"]], [0, 1, 2, 3])
        self.assertEqual({d["libraries"] for d in report["devices"]}, {"NCCL 2.28.9"})
        # Of one GPU there are none.
        out = self.succeed("turn-cuda-1.tsr", "--inputs", "in.safetensors", **fakes)
        self.assertNotIn("communicator", out)

    def test_no_peer_access(self):
        fakes = {"TESSERA_CUDA_LIBRARY_PATH": FAKES, "NCCL_NVLS_ENABLE": "0"}
        without = {"TESSERA_FAKE_NCCL_NO_WINDOWS": "2", "TESSERA_FAKE_CUDA_APART": "0 to 1"}
        run = ["turn-cuda-2.tsr", "--ranks=2", "--inputs", "in.safetensors"]
        for flag in "--symmetric", "--copy-engines":
            self.succeed(*run, flag, **fakes)
            self.check_failure(
                self.start(*run, flag, **fakes, **without),
                ["NCCL has no peer access between ranks [0, 1]", "GPU 0 of rank 0 cannot reach GPU 1",
                 "run without " + flag],
            )  # fmt: skip
        self.succeed(*run, **fakes, **without)

    def test_algorithms(self):
        blas = {"TESSERA_CUDA_LIBRARY_PATH": BLAS}
        run = ["cuda-1.tsr", "--inputs", "in.safetensors", "--verify", "squared-1.tsr"]
        line = "matrix products of all ranks: {} of stored algorithms, {} measured, {} by cuBLASLt's heuristic"
        self.assertNotIn("matrix products", self.succeed(*run, **blas))
        bits = set()
        for counts, flag in (((0, 2, 0), "--autotune"), ((2, 0, 0), "--autotune"), ((2, 0, 0), "--algorithms")):
            out = self.succeed(*run, flag, "kept", **blas)
            self.assertIn(line.format(*counts), out)
            begin = out.index("the bits of results depend on")
            bits.add(out[begin : out.index("matrix products")])
        self.assertEqual(len(bits), 1)
        report = json.loads(self.succeed(*run, "--algorithms=kept", "--report=json", **blas))
        self.assertRegex(bits.pop(), "algorithms +" + report["products"].pop("hash"))
        self.assertEqual(report["products"], {"stored": 2, "measured": 0, "heuristic": 0})
        kept = self.folder / "kept"
        text = kept.read_text()
        kept.unlink()
        process = self.start(*run, "--autotune", "kept", "--verbose", **blas)
        self.assertEqual(process.communicate(timeout=100)[1].count("measuring algorithms for "), 2)
        kept.write_text(text.replace("13.1.0", "12.9.1"))
        process = self.start(*run, "--algorithms", "kept", **blas)
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn(line.format(0, 0, 2), out)
        self.assertEqual(
            err,
            "tessera-run: rank 0: kept holds algorithms for cuBLASLt 12.9.1 on Fake 0; this is "
            "cuBLASLt 13.1.0 on Fake 0: cuBLASLt's heuristic chooses\n",
        )
        kept.write_text(text.replace("end 2", "end 3"))
        process = self.start(*run, "--algorithms", "kept", **blas)
        self.check_failure(process, ["kept:5: there are 2 entries above"])
        self.check_failure(self.start(*run, "--autotune", "no/such", **blas), ["no/such: cannot be written"])
        self.fail_with(*run, "--autotune", "kept", "--algorithms", "kept", says=["--autotune uses"])

    def test_progress(self):
        """What takes long has a line, on a terminal only; it goes."""
        run = [BIN / "tessera-run", "linear-1.tsr", "--inputs", "in.safetensors", "--steps", "10"]
        for steps in (10**8, 10):
            run[-1] = str(steps)
            terminal, end = pty.openpty()
            process = subprocess.Popen(run, cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=end)  # fmt: skip
            os.close(end)
            said = b""
            try:
                while some := os.read(terminal, 4096):
                    said += some
                    if b"left" in said and process.poll() is None:
                        process.send_signal(signal.SIGINT)
            except OSError:  # the other end is closed
                pass
            os.close(terminal)
            process.wait(timeout=100)
            if steps == 10:
                self.assertEqual((process.returncode, said), (0, b""))
            else:
                self.assertRegex(said, rb"\r\x1b\[Krunning: \d+ of 100000000 runs, 0:\d\d, \d+:\d\d left")

    def test_names_and_casts(self):
        save_file({"weight": W.astype(np.float64)}, self.folder / "w64.safetensors")
        save_file({"x": X}, self.folder / "x.safetensors")
        names = {"w": {"name": "weight", "cast": "f32"}, "y": "result"}
        (self.folder / "names.json").write_text(json.dumps(names))
        self.succeed(
            "linear-3.tsr",
            "--ranks", 3,
            "--inputs", "w64.safetensors",
            "--inputs", "x.safetensors",
            "--map", "names.json",
            "--output", "out.safetensors",
        )  # fmt: skip
        self.check_result("result")

    def test_folders_and_state(self):
        folder = self.folder / "weights"
        folder.mkdir()
        s = RNG.standard_normal((5, 4)).astype(np.float32)
        w = RNG.standard_normal((4, 4)).astype(np.float32)
        save_file({"s": s}, folder / "model-1.safetensors")
        save_file({"w": w}, folder / "model-2.safetensors")
        index = {"weight_map": {"s": "model-1.safetensors", "w": "model-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        self.succeed(
            "state-2.tsr", "--ranks", 2, "--inputs", "weights", "--steps", 3, "--output", "state"
        )
        result = load_file(self.folder / "state")
        self.assertEqual(list(result), ["s"])
        np.testing.assert_allclose(result["s"], s @ w.T @ w.T @ w.T, rtol=1e-4, atol=1e-4)

    def test_steps(self):
        s = (RNG.standard_normal((5, 4)) / 2).astype(np.float32)
        w = (RNG.standard_normal((4, 4)) / 2).astype(np.float32)
        save_file({"s": s, "w": w}, self.folder / "start")
        run = ["logged-2.tsr", "--ranks", 2, "--inputs"]
        out = self.succeed(*run, "start", "--steps", 3, "--log", "norm", "--save", "whole")
        expected = [np.sum((s @ np.linalg.matrix_power(w.T, n)) ** 2) for n in (1, 2, 3)]
        shown = re.findall(r"^(\d+): norm (\S+)$", out, re.MULTILINE)
        self.assertEqual([int(run) for run, _ in shown], [1, 2, 3])
        np.testing.assert_allclose([float(norm) for _, norm in shown], expected, rtol=1e-5)
        self.assertIn("wrote whole", out)
        # From run 2 on: the same bits, by processes too.
        save_file({"w": w}, self.folder / "w.safetensors")
        part = ["--inputs", "w.safetensors"]
        self.succeed(*run, "start", "--steps", 2, "--save", "part")
        for mpi, ranks in [(None, run), (2, ["logged-2.tsr", "--inputs"])]:
            out = self.succeed(
                *ranks, "part", *part, "--log", "norm", "--report", "json", "--save", "rest", mpi=mpi
            )
            self.assertEqual(json.loads(out)["log"], {"norm": [float(np.float32(shown[-1][1]))]})
            whole, rest = (load_file(self.folder / file) for file in ("whole", "rest"))
            self.assertEqual(list(rest), ["s"])
            self.assertEqual(whole["s"].tobytes(), rest["s"].tobytes())
        # Of a run that does not end well the last file is there, and whole.
        process = self.start(
            *run, "start", "--steps", 10**9, "--log", "norm", "--save", "kept", "--save-every", 2
        )
        for _ in range(3):
            process.stdout.readline()
        process.kill()
        process.communicate()
        self.assertEqual(list(load_file(self.folder / "kept")), ["s"])

    def test_loads(self):
        """What ranks move and hold where it is not the same."""
        run = ["linear-4.tsr", "--ranks", 4, "--inputs", "in.safetensors", "--report"]
        title, what, _, *rows = self.succeed(*run, "ranks").splitlines()
        self.assertEqual(title, "linear-4.tsr: 4 ranks, mesh <tp = 4>, b = 5")
        self.assertEqual(what, "bytes that a rank moves in a run, and holds")
        ranks, sent, received, copied, external, *_ = zip(*(map(int, row.split()) for row in rows))
        self.assertEqual(ranks, (0, 1, 2, 3))
        self.assertEqual(external, tuple(4 * (5 * k + 6 * k + 5 * 6) for k in (3, 3, 3, 1)))
        self.assertEqual(sum(sent), sum(received))
        self.assertGreater(max(sent), np.mean(sent))
        (collective,) = json.loads(self.succeed(*run, "json"))["collectives"]
        for name, of_ranks in ("sent", sent), ("received", received):
            self.assertEqual(collective[name], max(of_ranks))
            self.assertAlmostEqual(collective["mean_" + name], np.mean(of_ranks))
        self.assertIn(f" {max(sent)}, mean {round(np.mean(sent))} ", self.succeed(*run, "collectives"))

    def test_states_that_start_as_zeros(self):
        run = ["zeros-2.tsr", "--ranks", 2]
        # New memory of the C library is not.
        self.succeed(*run, "--save", "end", MALLOC_PERTURB_="85")
        end = load_file(self.folder / "end")
        self.assertEqual(list(end), ["s", "t"])
        self.assertFalse(any(value.any() for value in end.values()))
        # Those in a file are not, and a file has all of them.
        states = {name: np.full((600, 4), i + 1, np.float32) for i, name in enumerate("st")}
        save_file(states, self.folder / "some")
        self.succeed(*run, "--inputs", "some", "--save", "end")
        for name, value in load_file(self.folder / "end").items():
            np.testing.assert_array_equal(value, states[name])
        # What a map names is there.
        (self.folder / "map.json").write_text('{"s": "moment"}')
        self.fail_with(*run, "--map", "map.json", says=["state 's': no tensor 'moment' in the inputs"])
        save_file({"t": states["t"]}, self.folder / "some")
        self.fail_with(*run, "--inputs", "some", says=[
            "state 's': no tensor 's' in some",
            "states that start as zeros are given all, as 't' is, or none"])  # fmt: skip

    def test_steps_that_cannot_be(self):
        s, w = np.zeros((5, 4), np.float32), np.zeros((4, 4), np.float32)
        save_file({"s": s, "w": w}, self.folder / "start")
        run = ["logged-2.tsr", "--ranks", 2, "--inputs", "start"]
        self.fail_with(*run, "--log", "w", says=["--log w: the program has no such result or state"])
        self.fail_with(*run, "--log", "nor", says=["--log nor:", "did you mean 'norm'?"])
        self.fail_with(*run, "--log", "s", says=["--log s: is [5, 4]; it must be a scalar, of shape []"])
        self.fail_with(*run, "--log", "part", says=["--log part: is in parts, [], partial = "])
        self.fail_with(*run, "--save-every", 2, says=["--save-every needs --save FILE"])
        self.fail_with(*run, "--save-every", 0, "--save", "x", says=["--save-every '0'", "at least 1"])
        self.fail_with(*run, "--save", "x", "--output", "x", says=["--output and --save are both 'x'"])
        self.fail_with(
            "linear-1.tsr", "--inputs", "in.safetensors", "--save", "x",
            says=["--save: 'linear-1.tsr' has no states; --output writes results"],
        )  # fmt: skip
        # Of another program.
        save_file({"w": w, "ss": s}, self.folder / "start")
        self.fail_with(*run, says=["state 's': no tensor 's' in start; did you mean 'ss'?"])
        save_file({"w": w, "s": s[:4]}, self.folder / "start")
        self.fail_with(*run, says=["start: tensor 's': has shape [4, 4], but input 's' is [5, 4]"])

    def test_checks(self):
        """What the program wants to be 0 and is not ends the runs, and nothing is written."""
        state = {"s": np.ones((5, 4), np.float32)}
        codes = np.zeros((2, 3), np.int32)
        save_file(state | {"codes": codes}, self.folder / "zeros")
        self.succeed("checked-2.tsr", "--ranks", 2, "--inputs", "zeros", "--steps", 2, "--save", "saved")
        kept = (self.folder / "saved").read_bytes()
        codes[0, 2] = -7
        save_file(state | {"codes": codes}, self.folder / "codes")
        for mpi, ranks in (None, ["--ranks", 2]), (2, []):
            self.fail_with(
                "checked-2.tsr", *ranks, "--inputs", "codes", "--steps", 2, "--save", "saved",
                "--output", "all", mpi=mpi,
                says=["run 1: a.mlir:3:7: codes are not 0: 'wrong' is -7 at [0, 2]"],
            )  # fmt: skip
            self.assertEqual((self.folder / "saved").read_bytes(), kept)
            self.assertFalse((self.folder / "all").exists())

    def test_output_in_place_of_an_input(self):
        shutil.copy(self.folder / "in.safetensors", self.folder / "out.safetensors")
        out = self.succeed(
            "linear-2.tsr", "--ranks", 2, "--inputs", "out.safetensors", "--output", "out.safetensors",
            "--verify", "linear-2.tsr",
        )  # fmt: skip
        self.assertRegex(out, r"\n  y +f32 +0 +- +0 +- +0 +- +-\n")
        self.check_result()

    # Bad input

    def test_command_line(self):
        self.fail_with(says=["no module"])
        self.fail_with("a.tsr", "--inptus", "x", says=["--inptus", "did you mean '--inputs'?"])
        self.fail_with("a.tsr", "b.tsr", says=["b.tsr", "only one module"])
        self.fail_with("a.tsr", "--steps", "0", says=["--steps", "at least 1"])
        self.fail_with("a.tsr", "--size", "b", says=["--size", "b=3"])
        self.fail_with("a.tsr", "--report=xml", says=["text, collectives, ranks or json"])
        self.fail_with("a.tsr", "--deadline", "soon", says=["--deadline", "seconds"])
        self.fail_with("a.tsr", "--transport", "pigeon", says=["mpi or threads"])
        self.fail_with("a.tsr", "--transport", "threads", says=["--ranks N"])
        self.fail_with("a.tsr", "--output", says=["--output"])
        self.fail_with("a.tsr", "--nonsense", says=["--nonsense"], mpi=2)
        self.fail_with("a.tsr", "--verbose=1", says=["--verbose", "no value"])
        self.assertIn("usage:", self.succeed("--help"))

    def test_modules(self):
        self.fail_with("none.tsr", says=["none.tsr"])
        (self.folder / "text.tsr").write_text("func.func @main() {}")
        self.fail_with("text.tsr", says=["text.tsr"])
        damaged = bytearray((self.folder / "linear-2.tsr").read_bytes())
        damaged[5000] ^= 1
        (self.folder / "damaged.tsr").write_bytes(damaged)
        self.fail_with("damaged.tsr", "--ranks", 2, says=["damaged.tsr"])

    def test_number_of_ranks(self):
        inputs = ["--inputs", "in.safetensors"]
        self.fail_with("linear-4.tsr", *inputs, says=["4", "1"])
        self.fail_with("linear-4.tsr", "--ranks", 3, *inputs, says=["4", "3"])
        self.fail_with("linear-2.tsr", "--ranks", 3, *inputs, says=["2", "3"])
        self.fail_with("linear-4.tsr", *inputs, mpi=2, says=["4", "2"])
        # Before as many threads start, each of which reads the module.
        begin = time.monotonic()
        self.fail_with("linear-2.tsr", "--ranks", 4096, *inputs, says=["2", "4096"])
        self.assertLess(time.monotonic() - begin, 10)

    def test_different_modules(self):
        process = subprocess.Popen(
            ["mpirun"]
            + ["-n", "1", BIN / "tessera-run", "linear-2.tsr", "--inputs", "in.safetensors", ":"]
            + ["-n", "1", BIN / "tessera-run", "other-2.tsr", "--inputs", "in.safetensors"],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.check_failure(process, ["ranks 0 and 1 differ in the module"])

    def test_tensors(self):
        def fails(tensors, *says, module="linear-2.tsr"):
            save_file(tensors, self.folder / "bad.safetensors")
            self.fail_with(module, "--ranks", 2, "--inputs", "bad.safetensors", says=says)

        fails({"x": X}, "input 'w'", "no tensor 'w'", "bad.safetensors")
        fails({"x": X, "w ": W}, "did you mean 'w '?")
        fails({"x": X, "w": W.T.copy()}, "bad.safetensors", "'w'", "[10, 6]", "[6, 10]")
        fails({"x": X, "w": W.astype(np.float64)}, "'w'", "F64", "F32", '"cast"')
        header = b"\xff\xff\xff\xff\0\0\0\0" + b"{}"
        (self.folder / "long.safetensors").write_bytes(header)
        self.fail_with("linear-1.tsr", "--inputs", "long.safetensors", says=["long.safetensors", "header"])
        self.fail_with("linear-1.tsr", says=["'x'"])
        self.fail_with("linear-1.tsr", "--inputs", "nowhere", says=["nowhere", "No such file"])
        self.fail_with(
            "linear-4.tsr", "--inputs", "bad.safetensors", mpi=4, says=["bad.safetensors", "'w'"]
        )

    def test_sizes(self):
        inputs = ["--inputs", "in.safetensors"]
        self.fail_with("linear-1.tsr", *inputs, "--size", "n=3", says=["--size n", "it has b"])
        self.fail_with("linear-1.tsr", *inputs, "--size", "b=3", says=["'x'", "[5, 10]", "[3, 10]"])
        self.fail_with("linear-1.tsr", *inputs, "--size", "b=17", says=["b", "17", "16"])

    def test_output(self):
        self.fail_with(
            "linear-2.tsr", "--ranks", 2, "--inputs", "in.safetensors", "--output", "no/out", says=["no/out"]
        )
        self.fail_with("linear-1.tsr", "--output", self.folder, says=["folder"])
        os.mkfifo(self.folder / "pipe")
        for flag in ("--output", "--trace"):
            self.fail_with("linear-1.tsr", flag, "pipe", says=["pipe: cannot be written: it is no regular file"])
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.fail_with("pipe", says=["'pipe': it is no regular file"])
        self.fail_with("linear-1.tsr", "--inputs", "pipe", says=["pipe: is not a file"])
        self.fail_with("a.tsr", "--output=o", "--trace=o", says=["--output and --trace are both 'o'"])

    def test_names_of_outputs(self):
        run = ["two-1.tsr", "--inputs", "in.safetensors", "--map", "names.json", "--output", "out"]
        for names, says in (
            ({"y": "z"}, "names.json: 'z' cannot be 'z' in the output, 'y' is"),
            ({"y": {"name": "z", "cast": "f64"}}, "names.json: 'y': only what is read can have a \"cast\""),
            ({"y": "__metadata__"}, "'__metadata__' in the output: safetensors files have no such tensor"),
        ):
            (self.folder / "names.json").write_text(json.dumps(names))
            self.fail_with(*run, says=[says])

    def test_memory_limit(self):
        self.fail_with(
            "linear-2.tsr", "--ranks", 2, "--inputs", "in.safetensors", "--memory-limit", 10, says=["10"]
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
