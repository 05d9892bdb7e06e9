"""Hints for names of modules and packages that a program uses without importing them."""

import importlib.util
import sys

from lockhouse_refusals import is_elsewhere, missing_package_reason, missing_module_reason

# The usual import statements of packages, by the names that they define.
_STATEMENTS = {
    "pd": "import pandas as pd", "np": "import numpy as np", "plt": "import matplotlib.pyplot as plt", "pl": "import polars as pl",
    "sns": "import seaborn as sns", "px": "import plotly.express as px", "nx": "import networkx as nx", "sm": "import statsmodels.api as sm",
    "pa": "import pyarrow as pa", "BeautifulSoup": "from bs4 import BeautifulSoup",
}
# Names of the standard library that are imported from a module.
_FROM_MODULES = {
    name: module
    for module, names in (
        ("collections", "Counter defaultdict deque OrderedDict namedtuple"),
        ("datetime", "timedelta timezone"),
        ("pathlib", "Path"),
        ("decimal", "Decimal"),
        ("functools", "reduce lru_cache"),
        ("itertools", "groupby islice"),
        ("dataclasses", "dataclass asdict"),
        ("io", "StringIO BytesIO"),
        ("statistics", "mean median stdev"),
        ("math", "sqrt ceil"),
        ("time", "sleep"),
        ("zoneinfo", "ZoneInfo"),
        ("concurrent.futures", "ThreadPoolExecutor as_completed"),
        ("typing", "Any Optional List Dict"),
    )
    for name in names.split()
}


def hint_for_loaded_module(name, member):
    """The import statement for the name of a loaded module; None for other names. `member` is what the program reads of the name."""
    if name not in sys.modules or "." in name:
        return None
    module = sys.modules[name]
    # As `datetime.now()` reads of the class, and not of the module of the same name.
    is_inner = member is not None and not hasattr(module, member) and hasattr(vars(module).get(name), member)
    return f"write `from {name} import {name}` first" if is_inner else f"write `import {name}` first"


def hint_for_usual_name(name):
    """The import statement for a name that programs usually import, or why it cannot be imported; None for other names."""
    if name in _FROM_MODULES:
        return f"write `from {_FROM_MODULES[name]} import {name}` first"
    statement = _STATEMENTS.get(name, f"import {name}")
    package = statement.split()[1].partition(".")[0]
    if is_elsewhere(package) or package in sys.modules or importlib.util.find_spec(package) is not None:
        return f"write `{statement}` first"
    return f"{name} would be {package}: {missing_package_reason(package)}" if name in _STATEMENTS else missing_module_reason(name)
