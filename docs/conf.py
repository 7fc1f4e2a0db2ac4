"""Settings of the documentation, which `make docs` builds into docs/_build/html.

Neither building nor reading needs a network: the theme uses system fonts, and formulas are MathML
(_ext/mathml.py).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), *(str(HERE.parent / name) for name in ("experiments", "src"))]

import generated  # noqa: E402  # on the path above

from langevinrl import __version__  # noqa: E402

project = "langevinrl"
author = "The langevinrl authors"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "docstrings"]
exclude_patterns = ["_build", "_generated", "_ext"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
default_role = "code"  # a word in single backticks in a docstring is code
smartquotes_action = "qe"  # curly quotes, but two hyphens are a flag

add_module_names = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "langevinrl"
html_logo = "_static/mark.svg"
html_favicon = "_static/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_generated/extra"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#00639c"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#7cc3ee"},
}

generated.write_all()  # pages include what it writes


def link_results(app: Sphinx, name: str, source: list[str]) -> None:
    """Point links to a README under results/ at its section of the provenance page."""
    source[0] = re.sub(r"\]\((?:\.\./)+results/(\w+)/README\.md\)", r"](#results-\1)", source[0])


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_results)
