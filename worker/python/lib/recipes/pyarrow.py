"""pyarrow: starts its threads at first use, so that is never in the zygote. Its paths are those of files in memory."""

import functools
import os
import shutil
import stat

MODULES = """
pyarrow.compute pyarrow.csv pyarrow.json pyarrow.feather pyarrow.parquet pyarrow.ipc pyarrow.dataset pyarrow.orc pyarrow.pandas_compat pyarrow.acero
"""


def rehearse():
    import io

    import pyarrow
    from pyarrow import compute, csv, parquet

    table = pyarrow.table({"a": [1, 2], "b": ["x", "y"]})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    parquet.read_table(io.BytesIO(buffer.getvalue()))
    csv.read_csv(io.BytesIO(b"a,b\n1,2")), compute.sum(table["a"]), table.group_by("b").aggregate([("a", "sum")])
    table.to_pylist()


def _opened(path, mode="r", memory_pool=None):
    """Takes the place of classes that open or map a file themselves. pandas 3 writes Parquet with one."""
    import pyarrow

    kind = "w" if "w" in mode else "r"
    return pyarrow.PythonFile(open(path, kind + "b", buffering=0), kind)


def _file_system():
    """Returns the file system of files in memory, for Parquet files and datasets."""
    import pyarrow
    from pyarrow import fs

    def facts(path):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)
        if stat.S_ISDIR(status.st_mode):
            return fs.FileInfo(path, fs.FileType.Directory, mtime=status.st_mtime)
        return fs.FileInfo(path, fs.FileType.File, size=status.st_size, mtime=status.st_mtime)

    class Files(fs.FileSystemHandler):
        def get_type_name(self):
            return "memory"

        def normalize_path(self, path):
            return path

        def get_file_info(self, paths):
            return [facts(path) for path in paths]

        def get_file_info_selector(self, selector):
            found, waiting = [], [selector.base_dir] if os.path.isdir(selector.base_dir) or not selector.allow_not_found else []
            while waiting:
                folder = waiting.pop()
                entries = [facts(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]
                waiting += [entry.path for entry in entries if selector.recursive and not entry.is_file]
                found += entries
            return found

        def create_dir(self, path, recursive):
            os.makedirs(path, exist_ok=True) if recursive else os.mkdir(path)

        def delete_dir(self, path):
            shutil.rmtree(path)

        def delete_dir_contents(self, path, missing_dir_ok=False):
            for entry in self.get_file_info_selector(fs.FileSelector(path, allow_not_found=missing_dir_ok)):
                self.delete_file(entry.path) if entry.is_file else self.delete_dir(entry.path)

        def delete_root_dir_contents(self):
            raise PermissionError("the root directory is not emptied")

        def delete_file(self, path):
            os.remove(path)

        def move(self, src, dest):
            os.replace(src, dest)

        def copy_file(self, src, dest):
            shutil.copyfile(src, dest)

        def open_input_stream(self, path):
            return _opened(path)

        open_input_file = open_input_stream

        def open_output_stream(self, path, metadata):
            return _opened(path, "w")

        def open_append_stream(self, path, metadata):
            return pyarrow.PythonFile(open(path, "ab", buffering=0), "w")

    return fs.PyFileSystem(Files())


def _without_map(read_table):
    @functools.wraps(read_table)
    def without_map(*args, memory_map=False, **named):
        return read_table(*args, **named)

    return without_map


def _use_file_system():
    """Makes files in memory the default for paths without a file system or a scheme."""
    from pyarrow import dataset, fs, orc, parquet
    from pyarrow.parquet import core

    memory, resolve, several = _file_system(), fs._resolve_filesystem_and_path, dataset._ensure_multiple_sources

    def resolved(path, filesystem=None, **named):
        is_plain = isinstance(path, (str, os.PathLike)) and "://" not in os.fspath(path)
        return (memory, os.fspath(path)) if filesystem is None and is_plain else resolve(path, filesystem, **named)

    fs._resolve_filesystem_and_path = core._resolve_filesystem_and_path = orc._resolve_filesystem_and_path = resolved
    core.read_table = parquet.read_table = _without_map(core.read_table)
    dataset._ensure_multiple_sources = lambda paths, filesystem=None: several(paths, memory if filesystem is None else filesystem)


def install():
    import pyarrow
    from lockhouse_path_arguments import read, write
    from pyarrow import csv, feather, ipc, json, orc

    pyarrow.OSFile = pyarrow.memory_map = _opened
    _use_file_system()
    read(orc.ORCFile, "__init__", 1)
    read(csv, "read_csv open_csv", 0, "input_file")
    read(json, "read_json open_json", 0, "input_file")
    read(feather, "read_table read_feather")
    read(ipc, "open_file open_stream")
    write(csv, "write_csv", 1, "output_file")
    write(feather, "write_feather", 1, "dest")
    write(orc, "write_table", 1, "where")
