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
]
for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# `mpirun -n 4 tessera-run ...` must work as root, on fewer cores than ranks, and
# with a rank's waiting giving way to another rank's work.
config.environment.update(
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    OMPI_MCA_hwloc_base_binding_policy="none",
    OMPI_MCA_mpi_yield_when_idle="1",
    OMPI_MCA_btl_vader_single_copy_mechanism="none",
    OMPI_MCA_btl="self,vader,tcp",
    OMPI_MCA_btl_tcp_if_include="lo",
    OMPI_MCA_plm="isolated",
    OPENBLAS_NUM_THREADS="1",
)
