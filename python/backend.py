"""What pip asks to make a wheel (PEP 517): the package with `cmake --install` of a build
in it. That is build/ beside the sources, or `--config-settings build=FOLDER`; what it
lacks is built."""

import pathlib
import shutil
import subprocess
import tempfile
import tomllib

from wheel.wheelfile import WheelFile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["tessera-opt", "tessera-compile", "tessera-run", "tessera", "tessera-compiler",
         "tessera-mpi"]
# Nothing of Python's is in the libraries; C's and C++'s are Debian 12's.
TAG = "py3-none-manylinux_2_36_x86_64"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = pathlib.Path((config_settings or {}).get("build", ROOT / "build"))
    if not (build / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build,
                        "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22",
                        "-DTESSERA_TESTS=OFF"], check=True)
    subprocess.run(["cmake", "--build", build, "--target", *PARTS], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name = f"{project['name']}-{project['version']}"
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder, "tree")
        package, info = tree / "tessera", tree / f"{name}.dist-info"
        subprocess.run(["cmake", "--install", build, "--prefix", package, "--strip"],
                       check=True, stdout=subprocess.DEVNULL)
        # A wheel has no links: a library has the name that is asked for.
        for link in sorted((package / "lib").glob("*.so*")):
            if link.is_symlink():
                target = link.resolve()
                link.unlink()
                if link.name.count(".") == 2:  # libtessera.so.0
                    target.rename(link)
        shutil.move(package / "lib/python/tessera", tree / "package")
        for file in (tree / "package").iterdir():
            shutil.move(file, package)
        for unused in ("lib/python", "lib/cmake", "lib/pkgconfig", "share"):
            shutil.rmtree(package / unused, ignore_errors=True)
        (package / "bin/tessera-view").unlink()  # pip makes one
        shutil.rmtree(tree / "package")
        info.mkdir()
        shutil.copy(ROOT / "LICENSE", info)
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: tessera\n"
                                    f"Root-Is-Purelib: false\nTag: {TAG}\n")
        (info / "entry_points.txt").write_text(
            "[console_scripts]\ntessera-view = tessera._view:main\n")
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            f"Summary: {project['description']}\n"
            f"Requires-Python: {project['requires-python']}\n"
            + "".join(f"Requires-Dist: {each}\n" for each in project["dependencies"]))
        with WheelFile(pathlib.Path(wheel_directory, f"{name}-{TAG}.whl"), "w") as wheel:
            wheel.write_files(tree)
    return f"{name}-{TAG}.whl"
