"""Loads packages before the seal, with everything that they would load later: a sealed worker cannot open a file.

Executed only in zygotes with packages. `recipes/` has what is special about single packages.
"""

import gc
import hashlib
import importlib
import importlib.metadata
import json
import os
import random
import re
import signal
import sys
import time

import lockhouse_module_memory
import lockhouse_refusals

# One thread for each library: a zygote must have one thread, and a worker's threads take address space of its limit.
_ENVIRONMENT = {
    **dict.fromkeys("OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS NUMEXPR_NUM_THREADS BLIS_NUM_THREADS "
                    "POLARS_MAX_THREADS RAYON_NUM_THREADS ARROW_IO_THREADS".split(), "1"),
    # The allocator that pyarrow brings along would start a thread when it is loaded.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
# The rehearsal of all packages together is killed after this time in seconds. The supervisor waits 240 s for a zygote.
_REHEARSAL_SECONDS = 120
# Maximum number of compiled modules that are imported of a package without a recipe.
_LIBRARIES_MAX = 200
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def load(modules, requirements, recipes):
    """Loads `modules` and the distributions of `requirements`. Returns (name, version, KiB, milliseconds) of each distribution.

    `recipes` maps names of top-level modules to the source of their recipe. Raises ImportError if something cannot be imported.
    """
    before = set(os.environ)
    os.environ.update(_ENVIRONMENT)
    recipes = _Recipes(recipes)
    sys.meta_path.insert(0, recipes)
    for name in modules:
        _import(name, f"[python] preload: {name!r}")
    loaded = [_load_distribution(requirement) for requirement in requirements]
    recipes.import_modules()
    _import_libraries(recipes)
    modules, threaded = _rehearsed(recipes)
    _import_all(modules)
    recipes.call("first_use", threaded)
    recipes.call("install")
    sys.meta_path.remove(recipes)
    recipes.defer()
    lockhouse_module_memory.collect(lockhouse_refusals.missing_module_reason)
    _generators[:] = [it for it in gc.get_objects() if isinstance(it, random.Random) and it is not random._inst]
    _hide_environment(before)
    return loaded


def _import(name, what):
    try:
        importlib.import_module(name)
    except BaseException as error:  # Any exception, including SystemExit, must be reported with the name of the package.
        raise ImportError(f"{what} cannot be imported: {type(error).__name__}: {error}") from error


def _load_distribution(requirement):
    name = re.match(r"[A-Za-z0-9._-]*", requirement)[0]
    what = f"[python] packages: {name!r}"
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"{what} is not installed in {sys.prefix}; install it with: lockhouse python add {name}") from None
    kb, began = _resident_kb(), time.monotonic()
    failures, modules = [], top_level_modules(distribution)
    for module in modules:
        try:
            _import(module, what)
        except ImportError as error:  # Some distributions have a module for another package, which need not be installed.
            failures.append(error)
    if modules and len(failures) == len(modules):
        raise failures[0]
    return name, distribution.version, max(_resident_kb() - kb, 0), int((time.monotonic() - began) * 1000)


def top_level_modules(distribution):
    """Names of the top-level modules that a distribution installs, without private ones."""
    names = set((distribution.read_text("top_level.txt") or "").split())
    for path in () if names else distribution.files or ():
        is_folder = len(path.parts) > 1
        if is_folder and "." not in path.parts[0] or not is_folder and path.suffix in (".py", ".so"):
            names.add(path.parts[0].partition(".")[0])
    return sorted(name for name in names if name.isidentifier() and name[0] != "_")


def _resident_kb():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE_KB


class _Recipes:
    """The recipes of packages, each a namespace with optional functions: see recipes/README.md. Also a finder in sys.meta_path."""

    def __init__(self, sources):
        self.sources, self.active = sources, {}

    def find_spec(self, fullname, path=None, target=None):
        """Executes the recipe of a package before the package is imported, and calls its function `before`. Finds nothing."""
        name = fullname.partition(".")[0]
        if name in self.sources:
            if name not in self.active:
                file = f"<lockhouse>/recipes/{name}.py"
                self.active[name] = {"__name__": f"lockhouse_recipes.{name}"}
                exec(compile(self.sources[name], file, "exec", dont_inherit=True), self.active[name])
            if "before" in self.active[name]:
                self.active[name]["before"](fullname)

    def import_modules(self):
        """Imports what the recipes name, which may activate further recipes."""
        done = set()
        while names := [name for name in self.active if name not in done]:
            done.update(names)
            for name in names:
                _import_all(self.active[name].get("MODULES", "").split())

    def defer(self):
        """Prepares the calls of `after_seal`, which workers make."""
        for name, namespace in self.active.items():
            if name in sys.modules and "after_seal" in namespace:
                lockhouse_module_memory.defer(name, namespace["after_seal"])

    def call(self, function, skipped=()):
        """Calls a function of each recipe that has it. A failure leaves out what the function was for. Returns the names of the
        packages whose function started a thread.
        """
        threaded = []
        for name, namespace in list(self.active.items()):
            if name not in sys.modules or function not in namespace or name in skipped:
                continue
            threads = _threads()
            try:
                namespace[function]()
            except Exception as error:
                print(f"recipe of {name}, {function}: {type(error).__name__}: {error}", file=sys.stderr)
            if _threads() > threads:
                threaded.append(name)
        return threaded


def _import_all(names):
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException:  # Optional parts, such as a reader whose library is not installed.
            pass


def _import_libraries(recipes):
    """Imports the compiled modules of all loaded packages, since these cannot be imported later. A recipe names them instead, unless it
    sets `ALL_LIBRARIES`.
    """
    for name, module in list(sys.modules.items()):
        folders = [folder for folder in getattr(module, "__path__", ()) if "." not in name and folder.startswith(sys.prefix)]
        if folders and recipes.active.get(name, {"ALL_LIBRARIES": True}).get("ALL_LIBRARIES"):
            _import_all(lockhouse_module_memory.libraries_of(name, folders[0])[:_LIBRARIES_MAX])


def _rehearsed(recipes):
    """What `_rehearse` returns, from the file in which an earlier zygote with the same packages stored it, if there is one."""
    versions = sorted(f"{it.name} {it.version}" for it in importlib.metadata.distributions())
    key = hashlib.sha256(repr((sys.version, versions, sorted((name, recipes.sources[name]) for name in recipes.active))).encode()).hexdigest()
    file = os.path.join(sys.prefix, "lockhouse-rehearsal.json")
    try:
        with open(file, "rb") as stored:
            found = json.load(stored)
        if found[0] == key:
            return found[1:]
    except (OSError, ValueError, LookupError):
        pass
    found = _rehearse(recipes)
    try:
        with open(f"{file}.{os.getpid()}", "x") as stored:
            json.dump([key, *found], stored)
        os.rename(f"{file}.{os.getpid()}", file)
    except OSError:
        pass  # The environment belongs to another user.
    return found


def _rehearse(recipes):
    """Calls the functions of all recipes in a throw-away process, which may start threads. Returns the names of the modules that it
    imported, and of the packages whose `first_use` starts a thread.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(_REHEARSAL_SECONDS)
            os.close(reader)
            before = set(sys.modules)
            threaded = recipes.call("first_use")
            recipes.call("rehearse")
            names = [name for name in sys.modules if name not in before]
            with open(writer, "wb", buffering=0) as pipe:
                data = json.dumps([names, threaded]).encode()
                while data:
                    data = data[pipe.write(data):]
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else ([], list(recipes.active))


def _threads():
    return len(os.listdir("/proc/self/task"))


def _hide_environment(before):
    """Removes from `os.environ` what loading has set. Compiled libraries still see it, so that their pools have one thread."""
    for name in set(os.environ) - before:
        value = os.environ.pop(name)
        os.putenv(name, value)


# The random generators that modules have created.
_generators = []


def reseed():
    """Called in the worker: gives each random generator a new seed."""
    for generator in _generators:
        generator.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
