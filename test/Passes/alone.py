#!/usr/bin/env python3
"""Every pass alone, on modules that it may not expect, succeeds or says what is wrong.

The modules are odd ones, below, and the examples' programs after each phase. Each
registered pass runs on each; so does the rest of the pipeline from every phase, and
the compiler from there. A finding is a signal, a time-out, or a failure without an
error at a place.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("differentiated", "bind", "propagated", "planned", "local", "kernels", "scheduled")
SECONDS = 60
LOCATED = re.compile(r":\d+:\d+\)?: error: |error: the program is planned for"
                     r"|error: a program needs a function|error: '@main'"
                     r"|error: cannot read the shardings ''")
V = "#tv.view<#m, [did(tp) * 4], alloc = (0)>"
L = "#tv.local<#tv.view<#m, [did(tp) * 4], alloc = (0)>, of [8]>"
TYPES = f"""#m = #tv.mesh<tp = 2>
!x = tensor<8xf32>
!v = tensor<8xf32, {V}>
!w = tensor<8xf32, #tv.view<#m, [8], alloc = (0)>>
!l = tensor<4xf32, {L}>
!s = memref<4xf32, strided<[?], offset: ?>>
"""
ODD = {
    "nothing": "",
    "a function without a body": "func.func private @main(!v) -> !v",
    "its local one": "func.func private @main(!l) -> !l",
    "a kernel without a body": "func.func private @map_0(!s) attributes {plan.kernel}\n"
        "func.func @main(%x: !l) -> !l {\n"
        '  %y = plan.launch @map_0() scalars [] from "a" : () -> !l\n  return %y : !l\n}',
    "no tensors": "func.func @main() {\n  return\n}",
    "only a scalar": "func.func @main(%c: i1, %x: !v) -> i1 {\n  return %c : i1\n}",
    "a local scalar": "func.func @main(%c: f32, %x: !l) -> f32 {\n  return %c : f32\n}",
    "a memref": "func.func @main(%x: !s) {\n  return\n}",
    "no rank": "func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> {\n"
        "  return %x : tensor<*xf32>\n}",
    "a reshard without views": "func.func @main(%x: !x) -> !x {\n"
        "  %y = tv.reshard %x : (!x) -> !x\n  return %y : !x\n}",
    "a reshard without a plan": "func.func @main(%x: !v) -> !w {\n"
        "  %y = tv.reshard %x : (!v) -> !w\n  return %y : !w\n}",
    "two kinds of types": "func.func @main(%x: !v) -> !x {\n"
        "  %y = tv.gelu %x : (!v) -> !x\n  return %y : !x\n}",
    "local and not": "func.func @main(%x: !l, %z: !x) -> !x {\n"
        "  %y = tv.add %z, %z : (!x, !x) -> !x\n  return %y : !x\n}",
    "two meshes": "func.func @main(%x: !v, %y: tensor<8xf32, "
        "#tv.view<#tv.mesh<dp = 2>, [did(dp) * 4], alloc = (0)>>) {\n  return\n}",
    "a foreign op": "func.func @main(%x: !v) -> !v {\n"
        "  %y = arith.addf %x, %x : !v\n  return %y : !v\n}",
    "an unknown op": 'func.func @main(%x: !v) -> !v {\n'
        '  %y = "else.op"(%x) ({\n    "else.end"() : () -> ()\n  }) : (!v) -> !v\n'
        '  return %y : !v\n}',
    "an unknown local op": 'func.func @main(%x: !l) -> !l {\n'
        '  %y = "else.op"(%x) : (!l) -> !l\n  return %y : !l\n}',
    "blocks": 'func.func @main(%x: !v) -> !v {\n'
        '  "else.branch"()[^end] : () -> ()\n^end:\n  return %x : !v\n}',
    "local blocks": 'func.func @main(%x: !l) -> !l {\n'
        '  "else.branch"()[^end] : () -> ()\n^end:\n  return %x : !l\n}',
    "no return": 'func.func @main(%x: !v) {\n  "else.branch"() : () -> ()\n}',
    "control flow": "func.func @main(%c: i1, %x: !v) -> !v {\n"
        "  %y = scf.if %c -> (!v) {\n    %z = tv.gelu %x : (!v) -> !v\n"
        "    scf.yield %z : !v\n  } else {\n    scf.yield %x : !v\n  }\n  return %y : !v\n}",
    "local control flow": "func.func @main(%c: i1, %x: !l) -> !l {\n"
        "  %y = scf.if %c -> (!l) {\n    %z = tv.gelu %x : (!l) -> !l\n"
        "    scf.yield %z : !l\n  } else {\n    scf.yield %x : !l\n  }\n  return %y : !l\n}",
    "a call": "func.func @f(%x: !v) -> !v {\n  return %x : !v\n}\n"
        "func.func @main(%x: !v) -> !v {\n  %y = call @f(%x) : (!v) -> !v\n  return %y : !v\n}",
    "a local call": "func.func @f(%x: !l) -> !l {\n  return %x : !l\n}\n"
        "func.func @main(%x: !l) -> !l {\n  %y = call @f(%x) : (!l) -> !l\n  return %y : !l\n}",
    "a call to nobody": "func.func private @f(!x) -> !x\n"
        "func.func @main(%x: !x, %v: !v) -> !x {\n"
        "  %y = call @f(%x) : (!x) -> !x\n  return %y : !x\n}",
    "a gradient": "func.func @f(%x: !v) -> !v {\n  return %x : !v\n}\n"
        "func.func @main(%x: !v) -> !v {\n"
        "  %0, %1 = tv.gradient @f(%x) of [0] with (%x) to [0] : (!v, !v) -> (!v, !v)\n"
        "  return %1 : !v\n}",
    "a gradient of itself": "func.func @main(%x: !v) -> !v {\n"
        "  %0, %1 = tv.gradient @main(%x) of [0] with (%x) to [0] : (!v, !v) -> (!v, !v)\n"
        "  return %1 : !v\n}",
    "a module in a module": "module {\n  func.func @main(%x: !v) -> !v {\n"
        "    return %x : !v\n  }\n}",
    "ops outside of functions": "%x = tv.constant dense<1.0> : !x\n"
        "%y = tv.softmax %x dim 0 : (!x) -> !x",
    "a launch of nothing": "func.func @main(%x: !l) -> !l {\n"
        '  %y = plan.launch @none(%x) scalars [] from "a" : (!l) -> !l\n  return %y : !l\n}',
    "a kernel of tensors": "func.func @map_0(%x: !l) attributes {plan.kernel} {\n"
        "  return\n}\nfunc.func @main(%x: !l) -> !l {\n"
        '  %y = plan.launch @map_0() scalars [] from "a" : () -> !l\n  return %y : !l\n}',
    "a kernel that is no kernel": "func.func @map_0(%x: !s, %y: !s) attributes {plan.kernel} {\n"
        '  "else.op"() : () -> ()\n  return\n}\nfunc.func @main(%x: !l) -> !l {\n'
        '  %y = plan.launch @map_0(%x) scalars [] from "a" : (!l) -> !l\n  return %y : !l\n}',
}


def run(tool, command, text):
    try:
        done = subprocess.run([tool, *command], input=text.encode(), capture_output=True,
                              timeout=SECONDS, env=dict(os.environ,
                                                        LLVM_DISABLE_SYMBOLIZATION="1"))
    except subprocess.TimeoutExpired:
        return None, "", ""
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


def passes(opt):
    """The names of all passes that are registered."""
    shown = run(opt, ["--help"], "")[1]
    listed = shown[shown.index("Passes:"):shown.index("Pass Pipelines:")]
    return re.findall(r"^      --([\w-]+)", listed, re.M)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    opt = str(Path(args.build, "bin", "tessera-opt"))
    compiler = str(Path(args.build, "bin", "tessera-compile"))

    programs = {name: TYPES + text for name, text in ODD.items()}
    example = (ROOT / "examples" / "mlp_grad.mlir").read_text()
    programs["mlp_grad"] = example
    for phase in PHASES:
        status, text, said = run(opt, [f"--tessera=to={phase} target=cuda:sm_90a"], example)
        if status:
            sys.exit(said)
        programs[f"mlp_grad after {phase}"] = text

    commands = [(opt, ["--allow-unregistered-dialect", f"--{name}"]) for name in passes(opt)
                if name not in ("composite-fixed-point-pass", "test-gradients",
                                "test-placement", "test-sharding-rules")]
    for phase in ("source",) + PHASES[:-1]:
        commands.append((opt, ["--allow-unregistered-dialect", f"--tessera=from={phase}"]))
    for phase in ("source",) + PHASES:
        commands.append((compiler, [f"--compile-from={phase}", "-o", os.devnull]))
    jobs = [(name, tool, command) for name in programs for tool, command in commands]

    def judge(job):
        name, tool, command = job
        status, _, said = run(tool, command, programs[name])
        if status is None:
            why = f"no end after {SECONDS} s"
        elif status < 0 or "Stack dump" in said:
            why = f"signal {-status}"
        elif status and not LOCATED.search(said):
            why = "no located error"
        else:
            return None
        return f"{name}: {Path(tool).name} {' '.join(command)}: {why}\n{said[-400:]}"

    found = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for finding in pool.map(judge, jobs):
            if finding:
                found += 1
                print(finding, flush=True)
    print(f"{len(commands)} passes and pipelines on {len(programs)} modules, {found} findings")
    return 1 if found or len(commands) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
