#!/usr/bin/env python3
"""Mutants of the repository's programs never crash or hang the compiler.

A mutant is the text of a program, or of its dump after a phase, with a few tokens,
lines, types or numbers changed. Each goes through one command of the compiler or the
interpreter. A finding is a signal, a time-out, an exit status that is not 0 without
an error at a place in the text, or a result that the compiler does not read back.
Mutant N is the same on every machine; `--seeds N:N+1 --keep DIR` keeps its text.

A build under sanitizers (TESSERA_SANITIZE) is known by its CMake cache and gets more
time; what a sanitizer reports is a finding. Leaks and container overflows are not
looked for, as MLIR itself is not instrumented.

With --bytecode the mutants are of bytecode; bytecode.py says where it is changed.
"""
import argparse
import bytecode
import concurrent.futures
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 5  # of the processor: a machine that does other things, too, finds nothing
WAITS = 20  # times as long without running is a hang
BYTES = 4 << 30
PHASES = ("differentiated", "bind", "propagated", "planned", "local", "kernels", "scheduled")
# A place is FILE:LINE:COLUMN, also in the output of an MLIR `loc`.
# A flag is a place, too.
LOCATED = re.compile(r':\d+(?::\d+\)?)?: error: |error: --mesh ')
DIFFERS = re.compile(r"result #\d+ differs|result #\d+ has shape")
TOKEN = re.compile(
    r'"[^"\n]*"|[%#!@^]?[A-Za-z_][\w$.]*|%\d+(?:#\d+)?|0x[0-9A-Fa-f]+'
    r"|\d+\.\d+(?:[eE][+-]?\d+)?|\d+|->|[^\S\n]+|\n|."
)
TYPE = re.compile(r"tensor<[^<>\n]*(?:<[^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*>[^<>\n]*)*>")
PRODUCT = re.compile(r"(?:did\([\w:()]+\)|_|\d+)(?: \* (?:did\([\w:()]+\)|_|\d+))*")
MESH = re.compile(r"tv\.mesh<[^>\n]*>")
INTERPRET = "--interpret"
NUMBERS = ("0", "1", "-1", "2", "3", "5", "7", "64", "65536", "2147483648",
           "4611686018427387904", "9223372036854775807", "9223372036854775808",
           "-9223372036854775808", "18446744073709551616")
ELEMENTS = ("f32", "f64", "bf16", "f16", "i64", "i32", "ui32", "i8", "ui8", "i1", "i7",
            "index", "f8E4M3FN", "f8E5M2", "complex<f32>", "none", "!tv.none")
PRODUCTS = ("_", "1", "0", "did(tp)", "did(tp) * _", "_ * did(tp)", "did(tp) * did(tp)",
            "did(dp) * _", "did(nope) * _", "2 * did(tp) * _", "did(tp:(1)2) * _",
            "did(tp:(2)2) * _", "did(tp:(0)2) * _", "did(tp:(1)0) * _", "?", "_ * _",
            "(did(tp) * _ | 4) * 4", "(did(tp) * _ | 0)", "(did(tp) * _ | 1 .. 3)",
            "(_ | 5 .. 3)", "((_ | 3) * 2 | 5)", "flat(2) did(tp) * _", "flat(9) _",
            "9223372036854775807 * _", "9223372036854775807 * 9223372036854775807")
PARTIALS = (", partial = [tp : sum]", ", partial = [tp : max]", ", partial = [dp : sum]",
            ", partial = [tp : sum, tp : max]", ", partial = []", ", alloc = (0)",
            ", alloc = (1, 0)", ", priority = [0, 1]", "")


# MLIR is not instrumented: what its containers and allocators poison tells nothing.
# The caller's own options come last.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:"
                    f"hard_rss_limit_mb={BYTES >> 20}:allocator_may_return_null=1:"
                    + os.environ.get("ASAN_OPTIONS", ""),
    "UBSAN_OPTIONS": "print_stacktrace=1:" + os.environ.get("UBSAN_OPTIONS", ""),
}
SANITIZED = re.compile(r"(?:Address|UndefinedBehavior)Sanitizer|: runtime error: ")


class Tools:
    """The commands of a build, run with bounds on time and memory."""

    def __init__(self, build):
        self.opt = str(Path(build, "bin", "tessera-opt"))
        self.compile = str(Path(build, "bin", "tessera-compile"))
        cache = Path(build, "CMakeCache.txt")
        self.sanitized = cache.exists() \
            and "TESSERA_SANITIZE:BOOL=ON" in cache.read_text()
        self.seconds = SECONDS * (8 if self.sanitized else 1)

    def limit(self):
        if not self.sanitized:  # a shadow takes terabytes; hard_rss_limit_mb holds
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def run(self, command, data=b""):
        """Status (None: out of time), output and errors of a command."""
        environment = dict(os.environ, LLVM_DISABLE_SYMBOLIZATION="1", **SANITIZERS)
        try:
            done = subprocess.run(command, input=data, capture_output=True,
                                  timeout=WAITS * self.seconds, preexec_fn=self.limit,
                                  env=environment)
        except subprocess.TimeoutExpired:
            return None, b"", ""
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return None, b"", ""
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")


class Corpus:
    """The programs, one of each file's parts, and what their first phases give."""

    def __init__(self, tools):
        self.tools = tools
        self.parts = []  # (name, text, commands that the file's RUN lines give)
        names = sorted((ROOT / "examples").rglob("*.mlir"))
        names += sorted((ROOT / "test").rglob("*.mlir"))
        for name in names:
            text = name.read_text()
            own = []
            for line in re.findall(r"RUN: *(.*)", text):
                for part in line.split("|"):
                    flags = re.findall(r'(--?tv-[\w-]+(?:="[^"]*"|=\S+)?)', part)
                    if flags and "tessera-opt" in part:
                        own.append([flag.replace('"', "") for flag in flags])
            text = re.sub(r"(^|\s)//(?! -----).*", r"\1", text)
            pieces = [p for p in text.split("// -----") if p.strip()]
            if name.name == "encoder.mlir":
                continue  # too long to change in one place that matters
            for number, piece in enumerate(pieces):
                label = f"{name.relative_to(ROOT)}:{number}"
                self.parts.append((label, re.sub(r"\n\s*\n+", "\n", piece), own))
        self.dumps = {}

    def at_phase(self, part, phase):
        """The program of a part after a phase; None if it does not get there."""
        key = part[0], phase
        if key not in self.dumps:
            status, out, _ = self.tools.run(
                [self.tools.opt, f"--tessera=to={phase}" +
                 (" target=cuda:sm_90a" if phase == "scheduled" else "")],
                part[1].encode())
            out = out.decode()
            self.dumps[key] = out if status == 0 and "func" in out else None
        return self.dumps[key]


    def bytecode_at(self, part, phase):
        """The same as bytecode; phase None: the source."""
        key = part[0], phase, "bytecode"
        if key not in self.dumps:
            text = self.at_phase(part, phase) if phase else part[1]
            status, out, _ = self.tools.run(
                [self.tools.opt, "--emit-bytecode"], (text or "").encode())
            self.dumps[key] = out if status == 0 else None
        return self.dumps[key]


class Mutation:
    def __init__(self, rng, text, corpus):
        self.rng, self.text, self.corpus = rng, text, corpus

    def apply(self):
        """Mostly changes after which types still agree: they get further."""
        rng = self.rng
        gentle = (self.view, self.view, self.view, self.views, self.everywhere,
                  self.everywhere, self.element, self.operation, self.axis, self.attribute)
        rough = (self.number, self.number, self.element, self.type, self.type,
                 self.product, self.partial, self.token, self.line, self.operation,
                 self.value, self.extent, self.attribute, self.axis, self.word)
        changes = gentle if rng.random() < 0.7 else rough
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            rng.choice(changes)()
        return self.text

    def legal_view(self, extents):
        """Some view of a tensor, most often a legal one."""
        rng = self.rng
        axes = re.findall(r"(\w+) = \d+", "".join(MESH.findall(self.text))) or ["tp"]
        axes = sorted(set(axes))
        rng.shuffle(axes)
        dims, left = [], list(axes)
        for extent in extents:
            at = rng.random()
            n = int(extent) if extent.isdigit() else 8
            if not left or at < 0.45:
                dims.append("_")
                continue
            did = f"did({left.pop()})"
            if left and rng.random() < 0.3:
                did += f" * did({left.pop()})"
            divisors = [d for d in range(1, min(n, 64) + 1) if n % d == 0] or [1]
            k = rng.choice(divisors)
            dims.append(rng.choice((
                f"{did} * _", f"_ * {did}", f"_ * {did} * {k}", f"{k} * {did} * _",
                f"({did} * _ | {max(n // k, 1)}) * {k}",
                f"({did} * _ | {max(n // k, 1)}) * {k}")))
        states = ""
        if left and rng.random() < 0.15:
            states = f", partial = [{left[0]} : {rng.choice(('sum', 'max', 'min'))}]"
        return "[" + ", ".join(dims) + "]" + states

    def view(self):
        """Another view of a tensor: of one type, of an alias, or where none was."""
        mesh = re.search(r"(#\w+) = #tv\.mesh", self.text)
        if not mesh:
            return self.views()
        def put(at):
            extents = at.group(1).rstrip("x").split("x")
            return (f"tensor<{at.group(1)}{at.group(2)}, "
                    f"#tv.view<{mesh.group(1)}, {self.legal_view(extents)}>>")
        old = r"tensor<((?:[\d?]+x)+)(\w+)(?:, #tv\.view<#\w+, [^\n>]*>)?>"
        if self.rng.random() < 0.5:  # an alias: its uses change with it
            old = r"(?<= = )" + old
        self.replace(old, put)

    def views(self):
        """The definition of a view, used by all types that name it."""
        def put(at):
            rank = at.group(2).count(",") + 1
            extents = [self.rng.choice(re.findall(r"\d+", d) or ["8"])
                       for d in at.group(2).split(",")][:rank]
            return at.group(1) + self.legal_view(extents) + ">"
        self.replace(r"(#tv\.view<#\w+, )\[([^\]\n]*)\][^\n>]*>", put)

    def everywhere(self):
        """One number or type, wherever it stands."""
        if self.rng.random() < 0.2:
            types = sorted(set(TYPE.findall(self.text)))
            if types:
                old = self.rng.choice(types)
                new = re.sub(r"(?<=[<x])(\d+|\?)(?=x)",
                             lambda at: self.rng.choice((at.group(), "1", "3", "0", "?")), old)
                self.text = self.text.replace(old, new)
            return
        numbers = re.findall(r"(?<=[<x])\d+(?=x)", self.text)
        if numbers:
            old = self.rng.choice(numbers)
            new = self.rng.choice(("0", "1", "2", "3", "5", "7", "12", "64", "1000", "?",
                                   str(int(old) * 2), str(int(old) + 1), "65537",
                                   "1099511627776", "4294967296"))
            self.text = re.sub(rf"(?<=[<x]){old}(?=x)", new, self.text)
            if new != "?":
                self.text = re.sub(rf"(?<=[\[ (*|]){old}(?=[\] ),*|])", new, self.text)

    def replace(self, pattern, new):
        """One of the pattern's matches becomes `new`, or new(match)."""
        found = list(re.finditer(pattern, self.text))
        if found:
            at = self.rng.choice(found)
            put = new(at) if callable(new) else new
            self.text = self.text[:at.start()] + put + self.text[at.end():]

    def number(self):
        def other(at):
            near = int(at.group()) + self.rng.choice((-1, 1)) if self.rng.random() < 0.3 \
                else self.rng.choice(NUMBERS)
            return str(near)
        self.replace(r"(?<![\w%#.])\d+(?![\w.])|(?<=[<x])\d+(?=x)", other)

    def element(self):
        new = self.rng.choice(ELEMENTS)
        old = r"\b(f64|f32|bf16|f16|i64|i32|ui32|i8|ui8|i1|index)\b(?!\()"
        if self.rng.random() < 0.5:
            which = re.findall(old, self.text)
            if which:  # everywhere: the types still agree
                which = self.rng.choice(which)
                self.text = re.sub(rf"(?<=[x<: (]){which}\b", new, self.text)
        else:
            self.replace(rf"(?<=[x<: (]){old}", new)

    def type(self):
        types = TYPE.findall(self.text) + re.findall(r"(?<=[ (])![\w]+", self.text)
        if types:
            self.replace(TYPE if self.rng.random() < 0.5 else r"(?<=[ (])![\w]+",
                         self.rng.choice(types + ["tensor<f32>", "f32", "tensor<*xf32>",
                                                  "memref<4xf32>", "index", "tensor<?xf32>"]))

    def extent(self):
        """An extent of one type, or of all equal ones."""
        new = self.rng.choice(("0", "1", "?", "3", "5", "1099511627776", "4294967296"))
        old = re.findall(r"(?<=[<x])\d+(?=x)", self.text)
        if old and self.rng.random() < 0.6:
            which = self.rng.choice(old)
            self.text = re.sub(rf"(?<=[<x]){which}(?=x)", new, self.text)
        elif self.rng.random() < 0.7:
            self.replace(r"(?<=[<x])(\d+|\?)(?=x)", new)
        else:  # another rank
            self.replace(r"(?<=tensor<)(\d+|\?)x", lambda at: self.rng.choice(("", at.group() * 2)))

    def product(self):
        views = [at for at in re.finditer(r"#tv\.(?:view|local)<[^\n]*?\[([^\]\n]*)\]", self.text)]
        if views:
            at = self.rng.choice(views)
            dims = re.split(r", ", at.group(1))
            which = self.rng.randrange(len(dims))
            kind = self.rng.random()
            if kind < 0.6:
                dims[which] = self.rng.choice(PRODUCTS)
            elif kind < 0.7:
                dims[which] = " * ".join((dims[which], self.rng.choice(PRODUCTS)))
            elif kind < 0.8:
                dims[which] = f"({dims[which]} | {self.rng.choice(NUMBERS[:8])})"
            elif kind < 0.9:
                del dims[which]
            else:
                self.rng.shuffle(dims)
            self.text = self.text[:at.start(1)] + ", ".join(dims) + self.text[at.end(1):]

    def partial(self):
        self.replace(r"(?<=\])(, (partial|alloc|priority) = [\[(][^\])\n]*[\])])?(?=>)",
                     self.rng.choice(PARTIALS))

    def axis(self):
        names = re.findall(r"(\w+) = \d+", self.text) + ["tp", "dp", "nope"]
        if self.rng.random() < 0.5:
            self.replace(r"(?<=did\()\w+", self.rng.choice(names))
        else:
            self.replace(r"#tv\.mesh<[^>\n]*>", "#tv.mesh<" + self.rng.choice((
                "tp = 1", "tp = 2", "tp = 3", "tp = 0", "tp = -1", "dp = 2, tp = 2",
                "tp = 2, dp = 3", "tp = 4294967296", "tp = 2, tp = 2", "",
                "dp = 65536, tp = 65536, ep = 2", "tp = 1000003")) + ">")

    def token(self):
        tokens = TOKEN.findall(self.text)
        real = [i for i, token in enumerate(tokens) if token.strip()]
        if len(real) < 2:
            return
        at, other = self.rng.choice(real), self.rng.choice(real)
        kind = self.rng.randrange(4)
        if kind == 0:
            tokens[at] = ""
        elif kind == 1:
            tokens[at] = tokens[at] + " " + tokens[at]
        elif kind == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = tokens[other]
        self.text = "".join(tokens)

    def line(self):
        lines = self.text.split("\n")
        at, other = (self.rng.randrange(len(lines)) for _ in range(2))
        kind = self.rng.randrange(3)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[other])
        else:
            lines[at], lines[other] = lines[other], lines[at]
        self.text = "\n".join(lines)

    def operation(self):
        """An op's name becomes another's of any program."""
        others = re.findall(r"\b(?:tv|comm|arith|math|plan|memref|scf|func)\.\w+\b",
                            self.rng.choice(self.corpus.parts)[1] + self.text)
        groups = ("tv.add tv.mul tv.gelu_grad tv.linear tv.matmul tv.rms_norm tv.gather".split(),
                  "tv.gelu tv.silu tv.reshape tv.reshard tv.rope".split(),
                  "arith.addf arith.mulf arith.divf arith.cmpf arith.addi arith.divsi "
                  "arith.remui arith.shli arith.maximumf math.powf".split(),
                  "math.exp math.log math.erf math.rsqrt math.absf arith.negf math.sin "
                  "math.ctpop arith.extf arith.fptosi".split(),
                  "sum max min prod mean".split())
        pick = self.rng.choice(groups + ((others,) if others else ()))
        if pick is groups[-1] and self.rng.random() < 0.7:
            self.replace(r"\b(sum|max|min|prod)\b", self.rng.choice(pick))
        else:
            old = [name for name in pick if name in self.text]
            self.replace(rf"\b{re.escape(self.rng.choice(old))}\b" if old else
                         r"\b(tv|arith|math)\.\w+\b(?=[ (])", self.rng.choice(pick))

    def value(self):
        values = re.findall(r"%\w+(?:#\d+)?", self.text)
        if values:
            self.replace(r"%\w+(?:#\d+)?", self.rng.choice(values))

    def attribute(self):
        def fewer(at):
            inner = at.group(1).split(", ")
            del inner[self.rng.randrange(len(inner))]
            return "{" + ", ".join(inner) + "}"
        kind = self.rng.random()
        if kind < 0.4:
            self.replace(r"\{([^{}\n]*)\}", fewer)
        elif kind < 0.7:
            self.replace(r"(?<= = )(\[[^\]\n]*\]|\"[^\"\n]*\"|\d+)(?=[,}])", self.rng.choice((
                "[]", '"x"', '""', "unit", "1.5", "[0]", "[-1, 9223372036854775807]",
                "[1, 0]", "dense<0> : tensor<1xi64>", "@main", '["b"]', "{}", "{b = 0}")))
        elif kind < 0.9:
            self.replace(r"\[[^\]\n]*\](?! *\{)", self.rng.choice((
                "[]", "[0]", "[0, 0]", "[0, 1]", "[1, 0]", "[-1]", "[0, 1, 2, 3, 4]",
                "[4611686018427387904, 1]")))
        else:
            self.replace(r"\((\d[\d.e+-]*)\)", "(" + self.rng.choice((
                "0", "0.0", "-1.0", "1.0e300", "0x7FC00000", "1.0", "true")) + ")")

    def word(self):
        """A part of one program in another."""
        other = self.rng.choice(self.corpus.parts)[1].split("\n")
        start = self.rng.randrange(len(other))
        lines = self.text.split("\n")
        lines[self.rng.randrange(len(lines)):0] = other[start:start + self.rng.randint(1, 3)]
        self.text = "\n".join(lines)


class Fuzzer:
    def __init__(self, build, keep, bytecode):
        self.bytecode = bytecode
        self.tools = Tools(build)
        self.corpus = Corpus(self.tools)
        self.keep = keep

    def mutant(self, seed):
        """What mutant `seed` is: its origin, command and text."""
        rng = random.Random(seed)
        corpus, opt, compiler = self.corpus, self.tools.opt, self.tools.compile
        part = rng.choice(corpus.parts)
        for _ in range(3):  # most begin with what compiles
            if not corpus.at_phase(part, "bind"):
                part = rng.choice(corpus.parts)
        axes = re.findall(r"(\w+) = \d+", "".join(MESH.findall(part[1]))) or ["tp"]
        mesh = f"{rng.choice(axes)}={rng.choice((1, 2, 3, 4, 5))}"
        mesh = rng.choice(("", "", f"mesh={mesh} "))
        commands = [
            [opt, f"--tessera={mesh}to=kernels"],
            [opt, f"--tessera={mesh}to=local", INTERPRET],
            [opt, INTERPRET],
            [compiler, "-"] + (["--mesh=" + mesh[5:-1]] if mesh else []),
        ]
        if part[2]:
            commands += [[opt, *rng.choice(part[2])]] * 2
        else:
            commands += [[opt, "--tessera=explain to=planned"]]
        text, command, phase = part[1], rng.choice(commands), "source"
        if rng.random() < 0.4:
            phase = rng.choice(PHASES)
            dump = corpus.at_phase(part, phase)
            if dump:
                text = dump
                command = rng.choice((*self.onward(phase), [opt, INTERPRET]))
            else:
                phase = "source"
        functions = re.findall(r"func\.func @\w+", text)
        if functions and "func.func @main" not in functions and rng.random() < 0.9:
            text = text.replace(rng.choice(functions), "func.func @main", 1)
        text = Mutation(rng, text, corpus).apply()
        if INTERPRET in command:  # on as many ranks as the mesh has, most often
            sizes = re.findall(r"(\w+) = (\d+)", (MESH.findall(text) or [""])[0])
            sizes = dict(sizes, **dict(re.findall(r"(\w+)=(\d+) ", command[1])))
            ranks = math.prod(map(int, sizes.values()))
            ranks = ranks if 0 < ranks < 65 and rng.random() < 0.9 else 2
            command = [f"{INTERPRET}={ranks}" if word == INTERPRET else word
                       for word in command]
        return f"{part[0]} from {phase}", command, text

    def onward(self, phase):
        """What takes a program from a phase on."""
        if phase == "scheduled":
            return [[self.tools.opt, "--cuda-verify-schedule"]]
        return [[self.tools.opt, f"--tessera=from={phase} to=kernels"],
                [self.tools.compile, "-", f"--compile-from={phase}"]]

    def bytecode_mutant(self, seed):
        """The same of bytecode."""
        rng = random.Random(seed)
        corpus, opt, compiler = self.corpus, self.tools.opt, self.tools.compile
        data = []
        while len(data) < 2:  # what is changed, and what attributes come from
            part, phase = rng.choice(corpus.parts), rng.choice((None, *PHASES))
            found = corpus.bytecode_at(part, phase)
            if found:
                data.append((found, part[0], phase))
        (mine, name, phase), other = data
        commands = [[opt], [opt, f"{INTERPRET}={rng.choice((1, 2, 4))}"]]
        if phase:
            commands += self.onward(phase)
        else:
            commands += [[opt, "--tessera=to=kernels"], [compiler, "-"]]
        changed = bytecode.mutant(rng, mine, [mine, other[0]])
        return f"{name} from {phase or 'source'}", rng.choice(commands), changed

    def judge(self, seed):
        """A finding of mutant `seed`: its kind and message, or None."""
        if self.bytecode:
            origin, command, data = self.bytecode_mutant(seed)
            text = data.decode(errors="replace")
        else:
            origin, command, text = self.mutant(seed)
            data = text.encode()
        found, said = None, ""
        with tempfile.NamedTemporaryFile() as module:
            compiles = command[0] == self.tools.compile
            status, out, said = self.tools.run(
                command + (["-o", module.name] if compiles else []), data)
        interprets = any(word.startswith(INTERPRET) for word in command)
        if status is None and interprets and self.bytecode:
            text = self.tools.run([self.tools.opt], data)[1].decode(errors="replace")
        if status is None and interprets and re.search(r"[<x]\d{3,}x", text):
            found = None  # its work grows with sizes
        elif status is None:
            found = f"no end after {self.tools.seconds} s"
        elif status is not None and (status < 0 or "Stack dump" in said):
            found = f"signal {-status}"
        elif SANITIZED.search(said):
            found = "a sanitizer's report"
        elif status and not LOCATED.search(said):
            found = "no located error"
        elif status and re.search("<unknown>:0: error: (?!--mesh )", said):
            found = "an error without a place"
        elif status and interprets and DIFFERS.search(said) \
                and origin.endswith("source") and not self.bytecode:
            found = "another result than the source's"
        elif status == 0 and not (compiles or interprets):
            again, _, said = self.tools.run([self.tools.opt], out)
            if again != 0:
                found = "the result is not valid"
        if not found:
            return None
        suffix = "mlirbc" if self.bytecode else "mlir"
        if self.keep:
            Path(self.keep, f"{seed}.{suffix}").write_bytes(data)
        tail = "\n".join("    " + line[:300] for line in said.strip().split("\n")[-14:])
        shown = " ".join(f"'{word}'" if " " in word else word for word in command)
        return seed, found, f"{seed}: {found}: {origin}\n  {shown} < {seed}.{suffix}\n{tail}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seeds", help="FIRST:LAST in place of 0:count")
    parser.add_argument("--keep", help="folder for the text of findings")
    parser.add_argument("--bytecode", action="store_true",
                        help="mutants of bytecode in place of text; see bytecode.py")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    first, last = map(int, args.seeds.split(":")) if args.seeds else (0, args.count)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    fuzzer = Fuzzer(args.build, args.keep, args.bytecode)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for finding in pool.map(fuzzer.judge, range(first, last)):
            if finding:
                found += 1
                print(finding[2], flush=True)
    print(f"{last - first} mutants of {len(fuzzer.corpus.parts)} programs, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
