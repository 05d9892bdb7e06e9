//! The recipes of packages that need one: see `lib/recipes/README.md`.

/// The recipes: the top-level module that each is for, and its Python source.
pub(crate) const ALL: [(&str, &str); 18] = [
    ("PIL", include_str!("../lib/recipes/PIL.py")),
    ("bs4", include_str!("../lib/recipes/bs4.py")),
    ("dateutil", include_str!("../lib/recipes/dateutil.py")),
    ("h5py", include_str!("../lib/recipes/h5py.py")),
    ("joblib", include_str!("../lib/recipes/joblib.py")),
    ("lxml", include_str!("../lib/recipes/lxml.py")),
    ("matplotlib", include_str!("../lib/recipes/matplotlib.py")),
    ("numpy", include_str!("../lib/recipes/numpy.py")),
    ("openpyxl", include_str!("../lib/recipes/openpyxl.py")),
    ("pandas", include_str!("../lib/recipes/pandas.py")),
    ("polars", include_str!("../lib/recipes/polars.py")),
    ("pyarrow", include_str!("../lib/recipes/pyarrow.py")),
    ("pytz", include_str!("../lib/recipes/pytz.py")),
    ("scipy", include_str!("../lib/recipes/scipy.py")),
    ("sklearn", include_str!("../lib/recipes/sklearn.py")),
    ("statsmodels", include_str!("../lib/recipes/statsmodels.py")),
    ("threadpoolctl", include_str!("../lib/recipes/threadpoolctl.py")),
    ("xlsxwriter", include_str!("../lib/recipes/xlsxwriter.py")),
];
