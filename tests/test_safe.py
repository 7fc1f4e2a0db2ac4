"""No file that is read can run code: nothing is unpickled or evaluated, nor imported by its word.

Where a name is imported, a test says why: it is ours, or `storage.trust` has let it pass.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_layers import FILES, NAMES, module_of

# Formats whose reading runs code, and what makes code of text.
UNSAFE_MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml",
    "jsonpickle", "code", "codeop", "runpy", "imp", "pkgutil",
}  # fmt: skip
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
IMPORTERS = {"import_module", "__import__", "spec_from_file_location", "load_module", "find_loader"}
# Every place that imports by a name which is not written out there.
BY_NAME = {
    "__init__": "the public names, a table of ours",
    "cli": "the verbs, a table of ours",
    "export": "its own files, a table of ours",
    "studies": "its own files, a table of ours",
    "registry": "an agent's class: of the table, or let pass by storage.trust",
    "envs.factory": "an environment: named by the user, or let pass by storage.trust",
}


def problems(text: str) -> list[str]:
    """What a piece of source has that reading a stranger's file must not meet."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        found += [name for name in names if name.split(".")[0] in UNSAFE_MODULES]
        if isinstance(node, ast.Call):
            found += problems_of_call(node)
    return found


def problems_of_call(node: ast.Call) -> list[str]:
    found = []
    if isinstance(node.func, ast.Name) and node.func.id in UNSAFE_CALLS:
        found.append(node.func.id)
    for keyword in node.keywords:
        # Also where it is not the plain word False, whatever it may be then.
        if keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False":
            found.append("allow_pickle")
        if keyword.arg == "shell" and ast.unparse(keyword.value) != "False":
            found.append("shell")
    return found


def imports_by_name(text: str) -> bool:
    """Whether something is imported whose name is not written out there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            plain = all(isinstance(argument, ast.Constant) for argument in node.args)
            if called in IMPORTERS and not plain:
                return True
    return False


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nothing_is_unpickled_or_evaluated(path: Path) -> None:
    assert problems(path.read_text()) == []


def test_every_import_by_name_is_known() -> None:
    found = {module_of(path) for path in FILES if imports_by_name(path.read_text())}
    assert found == set(BY_NAME)


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from yaml import load", "import dill.source", "eval('1')", "exec(text)",
        "np.load(path, allow_pickle=True)", "np.load(path, allow_pickle=flag)",
        "subprocess.run(words, shell=True)", "__import__(name)",
    ],
)  # fmt: skip
def test_the_test_sees_what_it_bans(text: str) -> None:
    assert problems(text)


def test_the_test_tells_a_name_from_a_word() -> None:
    assert imports_by_name("importlib.import_module(name)")
    assert imports_by_name("import_module(f'a.{b}')")
    assert not imports_by_name("importlib.import_module('wandb')")
