"""matplotlib: draws without a screen, and with its own fonts, which are kept in memory."""

import glob
import io
import logging
import os
import subprocess
import threading

from lockhouse_shown_images import show

# Folder for the configuration and the list of fonts. It must look writable, but nothing is read from it or written to it.
_FOLDER = "/"
_replaced = []


def before(name):
    """Called before a module of matplotlib is imported for the first time."""
    if name == "matplotlib":
        os.environ.update(MPLCONFIGDIR=_FOLDER, MPLBACKEND="agg")
        access = os.access
        _replace(os, "access", lambda path, *args, **kwargs: path == _FOLDER or access(path, *args, **kwargs))
    elif name == "matplotlib.font_manager":
        _leave_out_host_fonts()


def _leave_out_host_fonts():
    """Without this, the import would search the host for fonts, run a program, start a thread, and write a file."""
    import matplotlib

    matplotlib.get_configdir(), matplotlib.get_cachedir()  # Both remember the folder.
    own, walk = matplotlib.get_data_path(), os.walk
    _replace(os, "walk", lambda path, *args, **kwargs: walk(path, *args, **kwargs) if str(path).startswith(own) else iter(()))
    _replace(subprocess, "check_output", _fail)
    _replace(threading, "Timer", _Timer)
    _replace(matplotlib, "get_cachedir", lambda: os.devnull)
    logging.disable(logging.CRITICAL)


class _Timer:
    def __init__(self, *args, **kwargs):
        pass

    start = cancel = __init__


def _fail(*args, **kwargs):
    raise FileNotFoundError


def _replace(owner, name, value):
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def _restore():
    while _replaced:
        setattr(*_replaced.pop())
    logging.disable(logging.NOTSET)


class _FontFile(io.BytesIO):
    """A font in memory. Writers of PDF identify fonts by their names."""

    def __init__(self, path, data):
        super().__init__(data)
        self.name = path

    def __str__(self):
        return self.name


class _Files:
    """Stands for the module `os` in modules that look for fonts: `path.isfile` and `path.exists` know the fonts in memory."""

    def __init__(self, fonts):
        self.fonts, self.path = fonts, self

    def __getattr__(self, name):
        return getattr(os, name) if hasattr(os, name) else getattr(os.path, name)

    def isfile(self, path):
        return str(path) in self.fonts or os.path.isfile(path)

    exists = isfile


def _keep_fonts():
    """Replaces the functions that open fonts by functions that read them from memory."""
    import fontTools.subset
    import matplotlib
    from matplotlib import _mathtext, font_manager, ft2font

    fonts = {}
    for path in glob.glob(os.path.join(matplotlib.get_data_path(), "fonts", "ttf", "*.ttf")):
        with open(path, "rb") as file:
            fonts[path] = file.read()

    def opened(file):
        data = fonts.get(str(file))
        return file if data is None else _FontFile(str(file), data)

    original, load_font = ft2font.FT2Font, fontTools.subset.load_font

    class FT2Font:
        """A font of matplotlib. The fonts that matplotlib brings along are in memory."""

        def __new__(cls, file, *args, **kwargs):
            return original(opened(file), *args, **kwargs)

    ft2font.FT2Font = font_manager.FT2Font = FT2Font
    fontTools.subset.load_font = lambda file, *args, **kwargs: load_font(opened(file), *args, **kwargs)
    font_manager._cached_realpath = str
    font_manager.os = _mathtext.os = _Files(fonts)
    font_manager._get_font.cache_clear()


def rehearse():
    from matplotlib import dates, pyplot, style
    from mpl_toolkits import mplot3d

    _restore()
    _keep_fonts()
    for ending in ("png", "svg", "pdf", "jpg"):
        _figure(pyplot).savefig(io.BytesIO(), format=ending)
    figure, axes = pyplot.subplots()
    axes.plot(dates.num2date([1, 40]), [1, 2])
    figure.autofmt_xdate()
    figure.savefig(io.BytesIO())
    figure = pyplot.figure()
    figure.add_subplot(1, 2, 1, projection="3d").plot([1, 2], [3, 4], [5, 6])
    figure.add_subplot(1, 2, 2, projection="polar").plot([1, 2], [3, 4])
    figure.savefig(io.BytesIO())
    style.use("ggplot")


def _figure(pyplot):
    figure, axes = pyplot.subplots(2, 2)
    axes[0, 0].plot([1, 2], [3, 4], label="$x^2$")
    axes[0, 0].set(title="title", xlabel="x", ylabel=r"$\frac{a}{b}$")
    axes[0, 0].legend()
    axes[0, 1].bar(["a", "b"], [1, 2])
    axes[0, 1].annotate("a", (0, 1), xytext=(1, 1), bbox={"boxstyle": "round"}, arrowprops={"arrowstyle": "->"})
    axes[1, 0].hist([1, 2, 2])
    axes[1, 1].pie([1, 2], labels=["a", "b"])
    image = axes[1, 0].imshow([[1, 2], [3, 4]])
    axes[1, 0].contourf([[1, 2], [3, 4]])
    figure.colorbar(image, ax=axes[1, 0])
    figure.tight_layout()
    return figure


def _show(*args, **kwargs):
    """Shows the open figures, and closes them, as a window does that is closed."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        show(pyplot.figure(number).savefig, "figure")
    pyplot.close("all")


def _show_one(figure, *args, **kwargs):
    """Shows a figure."""
    show(figure.savefig, "figure")


def install():
    from matplotlib import figure, pyplot

    _restore()
    _keep_fonts()
    pyplot.switch_backend("agg")
    pyplot.show, figure.Figure.show = _show, _show_one
    _figure(pyplot).savefig(io.BytesIO(), format="png")
    pyplot.close("all")
