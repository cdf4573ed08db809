# lit's settings for all folders of test/. Run one folder or file by its path in
# the build folder: `lit -v build/test/TensorView/ops.mlir`.
import os

import lit.formats

config.name = "Tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tessera_build, "test")

# Our tools, then FileCheck, not, split-file and so on.
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.tessera_build, "bin"), config.llvm_bin, os.environ["PATH"]]
)
config.substitutions += [
    ("%python", config.python),
    ("%examples", os.path.join(config.tessera_source, "examples")),
    ("%lib", os.path.join(config.tessera_build, "lib")),
    ("%fakes", os.path.join(config.tessera_build, "fakes")),
    # For FileCheck of local programs: what is not named does not communicate.
    (
        "%no_other_collective",
        "'--implicit-check-not=comm.{{all_gather|all_reduce|reduce_scatter|all_to_all|permute|broadcast|exchange}}'",
    ),
]
# Kernels for cuda, kept from run to run.
config.environment["TESSERA_CACHE"] = os.path.join(config.tessera_build, "cache")
for name in ("HOME", "TMPDIR", "TESSERA_NVRTC", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# `mpirun -n 4 tessera-run ...` must work here.
with open(os.path.join(config.tessera_source, "scripts", "mpi.env")) as lines:
    config.environment.update(
        line.strip().split("=", 1) for line in lines if not line.startswith("#")
    )
