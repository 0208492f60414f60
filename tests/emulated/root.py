"""Python of x86-64 and the packages that tests need, unpacked into a folder: apt and pip fetch what is not for here."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from zipfile import ZipFile

PYTHON = ("python3-minimal", "libpython3-stdlib", "libstdc++6")
PACKAGES = ("numpy", "numba", "lark", "opt_einsum", "platformdirs", "pytest", "hypothesis", "scipy")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
LOADER = "lib64/ld-linux-x86-64.so.2"


def made(place: Path) -> Path:
    """The folder of the root, made if it is not there."""
    root = place / "root"
    if not (place / "ready").exists():
        rmtree(place, ignore_errors=True)
        print("fetching Python of x86-64", flush=True)
        _python(root, place / "apt")
        print("fetching packages", flush=True)
        _packages(root, place / "wheels")
        compileall.compile_dir(root, quiet=2, workers=0)
        (place / "ready").touch()
    return root


def _python(root: Path, apt: Path) -> None:
    """Debian's, by an apt with folders of its own, which believes that it is on x86-64 and has nothing installed."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(
        f'Dir::State "{apt}/state";\nDir::State::status "{apt}/status";\nDir::Cache "{apt}/cache";\n'
        'APT::Architecture "amd64";\nAPT::Architectures "amd64";\nAPT::Sandbox::User "";\n'
    )
    settings = {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}
    subprocess.run(["apt-get", "-qq", "update"], env=settings, check=True)
    asked = ["apt-get", "-qq", "-y", "--no-install-recommends", "--download-only", "install", *PYTHON]
    subprocess.run(asked, env=settings, check=True, stdout=subprocess.DEVNULL)
    for package in sorted((apt / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    found = (root / LOADER).readlink()  # absolute: it would be looked for outside of the root
    (root / LOADER).unlink()
    (root / LOADER).symlink_to(f"..{found}")


def _packages(root: Path, wheels: Path) -> None:
    """The versions that are installed here."""
    python = next(path.name for path in (root / "usr/bin").glob("python3.*"))
    wanted = [f"{name}=={version(name)}" for name in PACKAGES]
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    asked = ["download", "-q", "--only-binary=:all:", "--python-version", python.removeprefix("python")]
    subprocess.run([sys.executable, "-m", "pip", *asked, *platforms, "-d", wheels, *wanted], check=True)
    for wheel in wheels.glob("*.whl"):
        with ZipFile(wheel) as file:
            file.extractall(root / "packages")
