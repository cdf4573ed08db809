"""`cmake --install`, moved: its tools, both libraries by find_package and pkg-config, the
Python package, and a wheel.

    test_install.py BUILD"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
# What a machine without any of our packages has, and zstd.
LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1",
             "libzstd.so.1", "ld-linux-x86-64.so.2", "libtessera.so.0", "libtessera-compiler.so.0",
             "libmpi.so.40"}
PROGRAM = ROOT / "examples/mlp.mlir"
SAYS = "y[8, 16] begins with 1024\n"


def call(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env=dict(os.environ, **environment), timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="tessera-install-"))
        cls.tree = cls.top / "elsewhere"
        call("cmake", "--install", BUILD, "--prefix", cls.top / "here", "--strip")
        (cls.top / "here").rename(cls.tree)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def files(self):
        return [path for path in (*self.tree.glob("bin/*"), *self.tree.glob("lib/*.so*"))
                if not path.is_symlink() and path.name != "tessera-view"]

    def test_needs(self):
        """Nothing that a machine without LLVM and Debian 12's glibc lacks."""
        self.assertEqual(len(self.files()), 8)
        for path in self.files():
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", call("readelf", "-d", path)))
            if path.name == "TesseraMLIRPlugin.so":  # mlir-opt has them
                needed -= {"libMLIR.so.22.1", "libLLVM.so.22.1"}
            self.assertLessEqual(needed, LIBRARIES, path.name)
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", call("readelf", "-V", path))
            self.assertLessEqual(max((int(a), int(b)) for a, b in versions), (2, 36))

    def test_symbols(self):
        for name, allowed in {"libtessera.so": "tessera_",
                              "libtessera-compiler.so":
                                  "tessera_|_ZN7tessera(7compile|9getPhases|11tryBytecode)"}.items():
            lines = call("readelf", "-W", "--dyn-syms", self.tree / "lib" / name).splitlines()
            defined = [line.split()[7] for line in lines
                       if re.search(r"(GLOBAL|WEAK)\s+DEFAULT\s+\d+ ", line)]
            self.assertGreater(len(defined), 5)
            for symbol in defined:
                self.assertRegex(symbol, f"^({allowed})", name)

    def test_package(self):
        """What cpack packs is below 60 MB (it compresses better), and README's commands
        print with it what they print with a build."""
        packed = subprocess.run(f"tar -c {self.tree} | xz -1 -T0 | wc -c", shell=True, text=True,
                                capture_output=True, check=True)
        self.assertIn(int(packed.stdout), range(10_000_000, 60_000_000))
        call(ROOT / "scripts/verbatim", "--build", self.tree, "README.md")

    def test_tools(self):
        module = self.top / "tools.tsr"
        call(self.tree / "bin/tessera-compile", PROGRAM, "-o", module)
        self.assertIn("all_reduce", call(self.tree / "bin/tessera-opt",
                                         "--tessera=to=planned", PROGRAM))
        help_text = call(self.tree / "bin/tessera-run", "--help")
        self.assertIn("--ranks", help_text)

    def test_find_package(self):
        build = self.top / "embed"
        call("cmake", "-G", "Ninja", "-S", ROOT / "examples/embed", "-B", build,
             f"-DCMAKE_PREFIX_PATH={self.tree}")
        call("cmake", "--build", build)
        call(build / "compile", PROGRAM, "tp=1", self.top / "embed.tsr")
        self.assertEqual(call(build / "run", self.top / "embed.tsr"), SAYS)
        done = subprocess.run([build / "compile", PROGRAM, "dp=1", "none.tsr"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("dp", done.stderr)

    def test_pkg_config(self):
        where = {"PKG_CONFIG_PATH": str(self.tree / "lib/pkgconfig")}
        for source, package in (("run.c", "tessera"), ("compile.cpp", "tessera-compiler")):
            flags = call("pkg-config", "--cflags", "--libs", package, **where).split()
            # (lld, as its libraries: an older linker may not read them.)
            call("clang++-22" if source.endswith("cpp") else "clang-22", "-fuse-ld=lld",
                 ROOT / "examples/embed" / source, "-o", self.top / package, *flags,
                 f"-Wl,-rpath,{self.tree}/lib")
        call(self.top / "tessera-compiler", PROGRAM, "tp=1", self.top / "config.tsr")
        self.assertEqual(call(self.top / "tessera", self.top / "config.tsr"), SAYS)

    SCRIPT = ("import sys, numpy as np, tessera\n"
              "program = tessera.compile(open(sys.argv[1]).read())\n"
              "ones = {n: np.ones(s, np.float32) for n, s in "
              "dict(x=(8, 16), w0=(64, 16), w1=(16, 64)).items()}\n"
              "print(tessera.run(program, ones, ranks=2)['y'][0, 0], tessera.__file__)\n")

    def test_python(self):
        folder = self.tree / "lib/python"
        said = call(sys.executable, "-c", self.SCRIPT, PROGRAM, PYTHONPATH=str(folder))
        self.assertEqual(said, f"1024.0 {folder}/tessera/__init__.py\n")
        self.assertIn("rank 1", call(sys.executable, self.tree / "bin/tessera-view", PROGRAM,
                                     "--show-sharding", "w0"))

    def test_wheel(self):
        wheels, site = self.top / "wheels", self.top / "site"
        call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
             "--config-settings", f"build={BUILD}", "-w", wheels, ROOT)
        (wheel,) = wheels.iterdir()
        call(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, wheel)
        said = call(sys.executable, "-c", self.SCRIPT, PROGRAM, PYTHONPATH=str(site))
        self.assertEqual(said, f"1024.0 {site}/tessera/__init__.py\n")
        self.assertIn("--mesh", call(sys.executable, "-m", "tessera", "compile", "--help",
                                     PYTHONPATH=str(site)))
        self.assertIn("rank 1", call(site / "bin/tessera-view", PROGRAM, "--show-sharding",
                                     "w0", PYTHONPATH=str(site)))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
