"""Rules for imports between packages, modules that stay unloaded, and calls that must not occur."""

import ast
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("synthlang", "pretrain", "probes")
FORBIDDEN = {
    "synthlang": {"pretrain", "probes", "synthlang_bench", "torch"},
    "pretrain": {"probes", "synthlang_bench"},
    "probes": {"synthlang_bench"},
}
BANNED = (
    *("pickle", "cPickle", "dill", "joblib", "torch.load", "yaml.load", "yaml.load_all"),
    *(f"random.{name}" for name in random.__all__ if name != "Random"),  # which is a generator with a seed of its own
)
UNSAFE = re.compile(
    r"\b(?:trust_remote_code|allow_pickle)=(?!False)|\b(?:default_rng|SeedSequence|Random|PCG64|Philox|SFC64)\(\)"
)


@cache
def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """The nodes that the scans look at, of a file that several of them read."""
    wanted = (ast.Import, ast.ImportFrom, ast.Call)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, wanted)]


def imported(source: str) -> Iterator[tuple[int, str]]:
    """(line, first part of the module) of every import, inside functions and conditions too."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]
        elif isinstance(node, ast.Call) and _name(node.func) in ("importlib.import_module", "__import__"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from ((node.lineno, name.split(".")[0]) for name in names[:1])


def _name(node: ast.expr) -> str:
    """``np.random.rand`` of the expression that writes it; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def forbidden(*files: Path) -> list[str]:
    """``path:line: what`` of every pickle, unsafe load, remote code and global or unseeded random state."""
    banned = ", ".join(f'"{name}" = {{msg = "forbidden"}}' for name in BANNED)
    options = ["--isolated", "--ignore-noqa", "--no-cache", "-q", "--output-format=concise", "--select=TID251,NPY002"]
    options += ["--config", f"lint.flake8-tidy-imports.banned-api = {{{banned}}}"]
    command = [sys.executable, "-m", "ruff", "check", *options, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode in (0, 1), done.stderr
    lines = ((path, line) for path in files for line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    by_pattern = [f"{path}:{number}: {text}" for path, (number, text) in lines if UNSAFE.search(text)]
    return [*done.stdout.splitlines(), *by_pattern, *(place for path in files for place in _trusting(path))]


def _trusting(path: Path) -> Iterator[str]:
    """Calls that open a model or a tokenizer and leave it to transformers to ask whether its code may run."""
    calls = (node for node in nodes_of(path.read_text(encoding="utf-8")) if isinstance(node, ast.Call))
    for call in calls:
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "from_pretrained"
        if named and "trust_remote_code" not in {keyword.arg for keyword in call.keywords}:
            yield f"{path}:{call.lineno}: from_pretrained without trust_remote_code=False"


@pytest.fixture(scope="module")
def fresh():
    """Modules of a fresh interpreter that imports synthlang, ``first``, all that is in it, and then the command."""
    code = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import synthlang
first = sorted(set(sys.modules) - before)
names = [m.name for m in pkgutil.walk_packages(synthlang.__path__, "synthlang.")]
for name in names:
    importlib.import_module(name)
loaded = sorted({m.split(".")[0] for m in sys.modules})
import probes.cli, probes.commands
print(json.dumps({"first": first, "names": names, "loaded": loaded, "command": sorted(sys.modules)}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_synthlang_needs_no_torch(fresh):
    assert {"synthlang.sources.mini_english.source", "synthlang.transforms.word_order"} <= set(fresh["names"])
    assert "numpy" in fresh["loaded"], "the list of loaded modules is sound"
    heavy = {"torch", "transformers", "accelerate", "datasets", "matplotlib", "pretrain", "probes", "spacy", "stanza"}
    assert not heavy & set(fresh["loaded"])


def test_importing_synthlang_loads_nothing_but_what_python_has(fresh):
    assert {name.split(".")[0] for name in fresh["first"]} - sys.stdlib_module_names == {"synthlang"}


def test_the_command_loads_no_large_library_for_its_help_or_a_study_that_is_finished(fresh):
    assert {"torch", "matplotlib", "pandas", "typer"} & {*fresh["command"]} == {"typer"}


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package):
    files = files_of(package)
    assert len(files) > 10
    wrong = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in files
        for line, name in imported(path.read_text(encoding="utf-8"))
        if name in FORBIDDEN[package] | {"tests"}
    ]
    assert not wrong


def modules_imported(source: str, modules: set[str]) -> set[str]:
    """Return the names in ``modules`` that a source imports, also in functions and for types."""
    names: set[str] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inside | (set() if inside <= modules else {node.module})
    return names & modules


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules each of which leads to every other one."""
    leads_to = {module: set(imports[module]) for module in imports}
    for middle in imports:  # Warshall
        for module in imports:
            if middle in leads_to[module]:
                leads_to[module] |= leads_to[middle]
    found: list[set[str]] = []
    for module in imports:
        if module in leads_to[module] and not any(module in circle for circle in found):
            found.append({other for other in leads_to[module] if module in leads_to[other]})
    return found


def test_no_module_leads_back_to_itself():
    files = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for p in PACKAGES for path in files_of(p)}
    modules = {name.removesuffix(".__init__"): path for name, path in files.items()}
    imports = {name: modules_imported(path.read_text(encoding="utf-8"), {*modules}) for name, path in modules.items()}
    assert not [found for found in circles(imports) if len(found) > 1], "import circles"


def test_circles_are_seen():
    sources = {
        "a": "def f():\n    from b import x",
        "b": "if TYPE_CHECKING:\n    import c.d",
        "c.d": "from a import y",
        "c": "from c import d",
        "e": "import a\nimport f",
        "f": "import g\nimport torch",
        "g": "import h.f",
    }
    imports = {name: modules_imported(source, {*sources}) for name, source in sources.items()}
    assert imports["c"] == {"c.d"} and imports["f"] == {"g"}
    assert circles(imports) == [{"a", "b", "c.d"}]


@pytest.mark.parametrize(
    "line",
    [
        "import torch",
        "def f():\n    from torch.nn import functional",
        "if TYPE_CHECKING:\n    import torch",
        "import importlib\nimportlib.import_module('torch.nn')",
    ],
)
def test_the_scan_sees_every_form_of_import(line):
    assert "torch" in {name for _, name in imported(line)}


def test_the_scan_takes_no_other_name_for_an_import():
    source = "from .torch import x\nimport torchtext\n'import torch'\n# import torch\ntorch = 1\n"
    assert "torch" not in {name for _, name in imported(source)}


def test_no_unsafe_loads_and_no_global_randomness():
    assert forbidden(*(path for package in PACKAGES for path in files_of(package))) == []


SOUND = """
import random
import numpy as np
import torch
import yaml
yaml.safe_load(text)
np.random.default_rng(7).permutation(3)
random.Random(7).choice(x)
np.load("x", allow_pickle=False)
torch.random.fork_rng(devices=[])
f(trust_remote_code=False)
C.from_pretrained("x", trust_remote_code=False)
random = np.random.default_rng(7)
random.integers(3)
"""
WRONG = [
    "import pickle",
    "def f():\n    from pickle import load",
    "import torch as t\nt.load('x', weights_only=True)",
    "from torch import load\nload('x')",
    "f(trust_remote_code=True)",
    "f(trust_remote_code=flag)",
    "C.from_pretrained('x')",
    "import numpy as np\nnp.load('x', allow_pickle=True)",
    "import yaml\nclass L(yaml.Loader): pass\nyaml.load(text, L)",
    "import numpy as np\nnp.random.rand(3)",
    "from numpy import random\nrandom.shuffle(x)",
    "import numpy as np\nnp.random.default_rng()",
    "import random\nrandom.choice(x)",
    "from random import shuffle\nshuffle(x)",
    "import random\nrandom.Random()",
]


def test_the_scan_finds_what_is_forbidden_and_lets_sound_code_pass(tmp_path):
    files = [tmp_path / f"{number}.py" for number in range(len(WRONG) + 1)]
    for file, source in zip(files, [SOUND, *WRONG], strict=True):
        file.write_text(source + "\n")
    found = {Path(line.split(":")[0]).name for line in forbidden(*files)}
    assert found == {file.name for file in files[1:]}
