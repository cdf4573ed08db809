#!/usr/bin/env python3
"""Runs fuzzers of a build; see Fuzz.h.

    test/Fuzz/run.py --build build-sanitize --seconds 1800          each of them so long
    test/Fuzz/run.py --build build-sanitize --runs 20000 ViewText   the same inputs always

The first input that ends a fuzzer is the finding; its file stays in --keep, and the
fuzzer takes it as an argument. With --merge inputs that reached what the corpus in
the tree does not reach are added to it, made as small as they can be.
"""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Fuzz.h limits the time of an input.
LIMITS = ["-timeout=0", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"]
# A mutant of a mutant is no program.
OWN = {"IR": ["-mutate_depth=1", "-cross_over=0"]}
# What MLIR's containers poison tells nothing, as MLIR is not instrumented; leaks of
# what ends a fuzzer are none.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_container_overflow=0:allow_user_poisoning=0:"
                    "allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@contextlib.contextmanager
def unpacked(corpus, changed):
    """The folder of a corpus: programs lie in one, the rest, which nobody reads, packed."""
    packed = corpus.with_suffix(".zip")
    if not packed.exists():
        yield corpus
        return
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / corpus.name
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
        yield folder
        if changed:
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(folder.iterdir()):
                    archive.writestr(zipfile.ZipInfo(file.name), file.read_bytes(),
                                     zipfile.ZIP_DEFLATED)


def run(binary, corpus, dictionary, args, keep):
    """Whether the fuzzer ends without a finding."""
    keep.mkdir(parents=True, exist_ok=True)
    command = [str(binary), *LIMITS, *OWN.get(corpus.name, []), f"-max_len={args.max_len}",
               f"-artifact_prefix={keep}/", "-print_final_stats=1"]
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    if args.seconds:
        command.append(f"-max_total_time={args.seconds}")
    else:
        command += [f"-runs={args.runs}", "-seed=1"]
    # New inputs go to the first folder.
    with tempfile.TemporaryDirectory() as found:
        done = subprocess.run([*command, found, corpus], env=dict(os.environ, **SANITIZERS),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", cwd=keep)
        stats = [line.split(": ")[-1].strip() for line in done.stdout.splitlines()
                 if "number_of_executed_units" in line or "peak_rss_mb" in line]
        print(f"{corpus.name}: {' inputs, '.join(stats)} MB at most, "
              f"{len(os.listdir(found))} of them new", flush=True)
        if done.returncode:
            lines = done.stdout.splitlines()
            print(f"a finding: {' '.join(map(str, command))}\n" + "\n".join(lines[-60:]))
        elif args.merge:
            subprocess.run([binary, "-merge=1", *LIMITS, corpus, found], check=True,
                           env=dict(os.environ, **SANITIZERS),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build-sanitize")
    parser.add_argument("--runs", type=int, default=20000)
    parser.add_argument("--seconds", type=int, help="in place of runs, with other inputs each time")
    parser.add_argument("--max-len", type=int, default=8192)
    parser.add_argument("--keep", help="folder for inputs that end a fuzzer; else the working folder's `findings`")
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("names", nargs="*", help="all that the build has by default")
    args = parser.parse_args()
    folder = pathlib.Path(args.build).resolve() / "bin"
    names = args.names or sorted(path.name.removesuffix("Fuzzer")
                                 for path in folder.glob("*Fuzzer"))
    if not names:
        sys.exit(f"run.py: error: {folder} has no fuzzers: configure with -DTESSERA_SANITIZE=ON")
    keep = pathlib.Path(args.keep or "findings").resolve()
    good = []
    for name in names:
        with unpacked(HERE / "corpus" / name, args.merge) as corpus:
            good.append(run(folder / f"{name}Fuzzer", corpus,
                            HERE / "corpus" / f"{name}.dict", args, keep))
    with contextlib.suppress(OSError):
        keep.rmdir()  # nothing was found
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
