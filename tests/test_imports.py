"""Which package may import which, what stays out of memory, and calls that must not occur."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("synthlang", "pretrain", "probes")
CIRCLES = [  # that are still there; nothing may be added
    {f"probes.study.{name}" for name in ("costs", "finished", "index", "kinds", "tasks", "work")},
    {"probes.study.executors"}
    | {f"probes.study.executors.{name}" for name in ("inline", "local", "slurm", "slurm_job", "slurm_send")},
]
FORBIDDEN = {
    "synthlang": {"pretrain", "probes", "synthlang_bench", "torch"},
    "pretrain": {"probes", "synthlang_bench"},
    "probes": {"synthlang_bench"},
}
# deterministic ways into randomness: a generator with a seed of its own
SEEDED = {"default_rng", "Generator", "SeedSequence", "Random", "PCG64", "Philox", "SFC64"}
RANDOM_MODULES = ("random", "numpy.random")
SAFE_LOADERS = ("yaml.SafeLoader", "yaml.CSafeLoader")


def files_of(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(source: str) -> Iterator[tuple[int, str]]:
    """(line, first part of the module) of every import, inside functions and conditions too."""
    for node in ast.walk(ast.parse(source)):
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


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Local name → what it stands for, of every import."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                short = alias.asname or alias.name.split(".")[0]
                names[short] = alias.name if alias.asname else short
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def forbidden_calls(source: str) -> list[str]:
    """``line: what`` of every pickle, unsafe load, remote code and global random state."""
    tree = ast.parse(source)
    aliases = _aliases(tree)
    safe = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_safe_loader(node, aliases)}
    found = [f"{line}: {name}" for line, name in imported(source) if name in ("pickle", "cPickle", "dill", "joblib")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found += [f"{node.lineno}: {problem}" for problem in _problems(node, aliases, safe)]
    return sorted(found)


def _is_safe_loader(node: ast.ClassDef, aliases: dict[str, str]) -> bool:
    return any(_full(base, aliases) in SAFE_LOADERS for base in node.bases)


def _full(node: ast.expr, aliases: dict[str, str]) -> str:
    """The dotted name from the top of its package; empty for what was not imported (a local ``random``)."""
    head, _, rest = _name(node).partition(".")
    head = aliases.get(head, "")
    return f"{head}.{rest}" if head and rest else head


def _problems(call: ast.Call, aliases: dict[str, str], safe: set[str]) -> Iterator[str]:
    name = _full(call.func, aliases)
    keywords = {k.arg: k.value for k in call.keywords}
    if name == "torch.load":
        yield name
    if name in ("yaml.load", "yaml.load_all"):
        loader = keywords.get("Loader", call.args[1] if len(call.args) > 1 else None)
        known = loader is not None and (_name(loader) in safe or _full(loader, aliases) in SAFE_LOADERS)
        if not known:
            yield f"{name} without a safe loader"
    for argument in ("trust_remote_code", "allow_pickle"):
        value = keywords.get(argument)
        if value is not None and not (isinstance(value, ast.Constant) and value.value is False):
            yield argument
    module, _, function = name.rpartition(".")
    if module in RANDOM_MODULES and (function not in SEEDED or not (call.args or call.keywords)):
        yield name


@pytest.fixture(scope="module")
def fresh():
    """Modules of a fresh interpreter that imports synthlang, ``first``, and then all that is in it."""
    code = """
import importlib, json, pkgutil, sys
before = set(sys.modules)
import synthlang
first = sorted(set(sys.modules) - before)
names = [m.name for m in pkgutil.walk_packages(synthlang.__path__, "synthlang.")]
for name in names:
    importlib.import_module(name)
print(json.dumps({"first": first, "names": names, "loaded": sorted({m.split(".")[0] for m in sys.modules})}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_synthlang_needs_no_torch(fresh):
    assert {"synthlang.sources.mini_english.source", "synthlang.transforms.word_order"} <= set(fresh["names"])
    assert "numpy" in fresh["loaded"], "the list of loaded modules is sound"
    heavy = {"torch", "transformers", "accelerate", "datasets", "matplotlib", "pretrain", "probes", "spacy", "stanza"}
    assert not heavy & set(fresh["loaded"])


def test_importing_synthlang_loads_nothing_else(fresh):
    assert fresh["first"] == ["synthlang"]


def test_the_command_does_not_load_torch_for_its_help():
    code = "import sys, probes.cli; print('torch' in sys.modules, 'matplotlib' in sys.modules, 'typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False", "True"]


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
    """Those of ``modules`` that a source imports, in functions and for types too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
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
    new = [found for found in circles(imports) if len(found) > 1 and not any(found <= known for known in CIRCLES)]
    assert not new, "import circles"


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
        "import torch.nn as nn",
        "from torch import Tensor",
        "def f():\n    from torch.nn import functional",
        "if TYPE_CHECKING:\n    import torch",
        "import numpy, torch",
        "import importlib\nimportlib.import_module('torch.nn')",
        "__import__('torch')",
    ],
)
def test_the_scan_sees_every_form_of_import(line):
    assert "torch" in {name for _, name in imported(line)}


def test_the_scan_takes_no_other_name_for_an_import():
    source = "from .torch import x\nimport torchtext\n'import torch'\n# import torch\ntorch = 1\n"
    assert "torch" not in {name for _, name in imported(source)}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_unsafe_loads_and_no_global_randomness(package):
    found = {
        str(path.relative_to(ROOT)): problems
        for path in files_of(package)
        if (problems := forbidden_calls(path.read_text(encoding="utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import pickle", "pickle"),
        ("def f():\n    from pickle import load", "pickle"),
        ("import torch\ntorch.load('x')", "torch.load"),
        ("import torch as t\nt.load('x', weights_only=True)", "torch.load"),
        ("from torch import load\nload('x')", "torch.load"),
        ("f(trust_remote_code=True)", "trust_remote_code"),
        ("f(trust_remote_code=flag)", "trust_remote_code"),
        ("import numpy as np\nnp.load('x', allow_pickle=True)", "allow_pickle"),
        ("import yaml\nyaml.load(text)", "yaml.load without a safe loader"),
        ("import yaml\nyaml.load(text, Loader=yaml.Loader)", "yaml.load without a safe loader"),
        ("import yaml\nclass L(yaml.Loader): pass\nyaml.load(text, L)", "yaml.load without a safe loader"),
        ("import numpy as np\nnp.random.rand(3)", "numpy.random.rand"),
        ("import numpy as np\nnp.random.seed(0)", "numpy.random.seed"),
        ("from numpy import random\nrandom.shuffle(x)", "numpy.random.shuffle"),
        ("import numpy as np\nnp.random.default_rng()", "numpy.random.default_rng"),
        ("import random\nrandom.choice(x)", "random.choice"),
        ("from random import shuffle\nshuffle(x)", "random.shuffle"),
        ("import random\nrandom.Random()", "random.Random"),
    ],
)
def test_the_scan_finds_what_is_forbidden(source, problem):
    assert [found.split(": ", 1)[1] for found in forbidden_calls(source)] == [problem]


def test_the_scan_knows_a_local_generator_from_the_module():
    assert forbidden_calls("import numpy as np\nrandom = np.random.default_rng(7)\nrandom.integers(3)") == []


def test_the_scan_lets_sound_code_pass():
    source = """
import random
import numpy as np
import torch
import yaml

class Loader(yaml.SafeLoader):
    pass

yaml.load(text, Loader)
yaml.load(text, Loader=yaml.SafeLoader)
yaml.safe_load(text)
np.random.default_rng(7).permutation(3)
rng = np.random.default_rng(7)
rng.integers(3)
random.Random(7).choice(x)
np.load("x", allow_pickle=False)
torch.random.fork_rng(devices=[])
load_file("model.safetensors")
f(trust_remote_code=False)
"""
    assert forbidden_calls(source) == []
