"""The installed package: another distribution of the same package name is noticed and named."""

import base64
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
START = "import sys; from bridle.cli import main; sys.exit(main())"


@pytest.fixture
def site(tmp_path):
    """A folder for packages in which bridle-agent is installed, as pip leaves it."""
    site = tmp_path / "site"
    skipped = shutil.ignore_patterns("__pycache__", "page", "chat_page")
    shutil.copytree(ROOT / "src" / "bridle", site / "bridle", ignore=skipped)
    record(site, "bridle-agent", "0.1.0", sorted((site / "bridle").rglob("*.py")))
    return site


def record(site, name, version, files):
    """Write what pip writes about a distribution with these files."""
    lines = []
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
        lines.append(f"{file.relative_to(site)},sha256={digest.rstrip('=')},{file.stat().st_size}")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("\n".join([*lines, f"{info.name}/RECORD,,", ""]))


def install_other(site, *, version="0.6.1", module="def main(): ...\n"):
    """Install a distribution `bridle` over it, as the one on the package index would be."""
    files = [site / "bridle" / "__init__.py", site / "bridle" / "__main__.py"]
    for file in files:
        file.write_text(module)
    record(site, "bridle", version, files)
    return files


def started(bridle, site, *arguments):
    others = sysconfig.get_path("purelib")  # whose .pth files, and so this checkout, do not count
    environ = bridle.environ | {"PYTHONPATH": f"{site}:{others}"}
    words = [sys.executable, "-S", "-c", START, *arguments]
    return subprocess.run(
        words, env=environ, cwd=bridle.workspace, capture_output=True, text=True, timeout=120
    )


def test_a_package_whose_files_another_distribution_replaced_says_so_when_it_cannot_start(
    bridle, site
):
    install_other(site)
    done = started(bridle, site, "--version")
    said, advice = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert said.startswith("bridle: cannot start: another distribution, bridle 0.6.1, installs")
    assert "replaced files of bridle-agent: bridle/__init__.py, bridle/__main__.py" in said
    assert "pip uninstall -y bridle bridle-agent; pip install 'bridle-agent[all]'" in advice


def test_a_package_that_lost_files_when_the_other_was_uninstalled_says_so(bridle, site):
    files = install_other(site)
    for file in files:
        file.unlink()
    shutil.rmtree(site / "bridle-0.6.1.dist-info")
    done = started(bridle, site, "--version")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert (
        "files of bridle-agent are missing: bridle/__init__.py, bridle/__main__.py" in done.stderr
    )


def test_something_that_breaks_later_names_the_other_distribution(bridle, site):
    assert started(bridle, site, "config", "show").returncode == 0
    target = site / "bridle" / "config" / "loader.py"
    target.write_text("")
    record(site, "bridle", "0.7", [target])
    done = started(bridle, site, "config", "show")
    assert done.returncode == 1 and "bridle 0.7, installs a package named `bridle`" in done.stderr
    assert "This is a bug" not in done.stderr and "pip uninstall" in done.stderr


def test_doctor_names_another_distribution_that_works_beside_it(bridle, site):
    good = started(bridle, site, "doctor")
    assert "✓ bridle " in good.stdout and "another distribution" not in good.stdout
    ours = (site / "bridle" / "__init__.py").read_text()
    install_other(site, module=ours)  # installed first, so that the files are still ours
    done = started(bridle, site, "doctor")
    assert done.returncode == 1
    assert "another distribution, bridle 0.6.1" in done.stdout and "pip uninstall" in done.stdout


def test_the_package_is_published_under_a_name_of_its_own_with_an_extra_for_everything():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert project["name"] == "bridle-agent" and project["scripts"] == {"bridle": "bridle.cli:main"}
    (everything,) = extras.pop("all")
    assert everything == f"bridle-agent[{','.join(sorted(extras))}]"
    assert project["urls"].keys() >= {"Homepage", "Documentation", "Changelog", "Issues"}
    assert "Programming Language :: Python :: 3.14" in project["classifiers"]
