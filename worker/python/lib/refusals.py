"""Explains what the sandbox refuses, in errors that code can also catch.

Nothing here is a protection: the kernel enforces the sandbox. Without these explanations, `tempfile` would report a missing
directory, `os.walk` an empty one, and an import "No module named".
"""

import builtins
import difflib
import errno
import functools
import os
import platform
import re
import shutil
import socket
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter

import lockhouse_files_store as files
from lockhouse_calls import find_server, identifier, known_servers
from lockhouse_servers import ServerFinder, servers_text
from lockhouse_sources import is_code, program_text
from lockhouse_dialects import DialectFinder
from skills import SkillFinder
from lockhouse_streams import NO_INPUT, PREFIX, warn_once

TOOL = "use a tool of an MCP server instead"
FILES = files.HOST_PATH
NATIVE_FILES = (f"{PREFIX}: files of the host cannot be opened, and libraries written in C cannot open files in memory; use "
                "open(path, 'rb') instead, and pass them the file object or its content")
MAPPINGS = f"{PREFIX}: files in memory cannot be mapped, locked or shared; use open, sqlite3, json or pickle instead"
NETWORK = f"{PREFIX}: there is no network; {TOOL}"
PROCESSES = f"{PREFIX}: processes cannot be started; use Python, or a tool of an MCP server, instead"
PARALLEL = f"{PREFIX}: processes cannot be started; use concurrent.futures.ThreadPoolExecutor or asyncio instead"
SYSTEM = f"{PREFIX}: the operating system is out of reach; {TOOL}"
TERMINAL = f"{PREFIX}: there is no terminal and no screen; use print, and put the values into the code"
DEBUGGER = f"{PREFIX}: there is no debugger; use print instead"
ENVIRONMENT = f"{PREFIX}: there are no environment variables; put the value into the code, or use a tool of an MCP server, " \
              "which has credentials of its own"
ALARMS = f"{PREFIX}: there are no timer signals; use asyncio.wait_for or time.monotonic instead"
ZONE = f"{PREFIX}: the time zone of the process is fixed; use zoneinfo.ZoneInfo instead"
PACKAGES = f"{PREFIX}: nothing can be installed by code; use what is loaded, or ask the user to run: lockhouse python add NAME"
MACHINE_CODE = f"{PREFIX}: no memory can become executable, so machine code cannot be generated; use numpy without it instead"
CALLBACKS = f"{PREFIX}: no memory can become executable, so C code cannot call Python; use Python alone instead"

# Functions that raise PermissionError with an explanation, by module or module:class. Modules that are not loaded are skipped.
_REFUSED = (
    (FILES, "os", "fwalk mkfifo mknod statvfs"),
    (PROCESSES, "os", "system fork forkpty posix_spawn posix_spawnp execv execve execvp execvpe"),
    (PROCESSES, "subprocess:Popen", "__init__"),
    (NETWORK, "socket", "getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr create_connection create_server"),
    (NETWORK, "asyncio:BaseEventLoop", "create_connection create_server create_datagram_endpoint"),
    (NETWORK, "asyncio:SelectorEventLoop", "create_unix_connection create_unix_server"),
    (NETWORK, "webbrowser", "open open_new open_new_tab"),
    (SYSTEM, "os", "getloadavg uname getlogin"),
    (SYSTEM, "socket", "gethostname getfqdn"),
    (ALARMS, "signal", "alarm setitimer"),
    (ZONE, "time", "tzset"),
    (DEBUGGER, "sys", "breakpointhook"),
    (DEBUGGER, "pdb", "set_trace"),
    (TERMINAL, "getpass", "getpass"),
)
# Functions that report that a file or program of the host does not exist. Their explanation is printed once.
_ABSENT = (
    (FILES, "os.path", "exists lexists isfile isdir islink ismount"),
    (FILES, "os", "access"),
    (PROCESSES, "shutil", "which"),
)

_MISSING_REASONS = {
    name: words
    for words, names in (
        (NETWORK, "requests httpx aiohttp urllib3 urllib.request http.client http.server ftplib smtplib imaplib poplib telnetlib "
                  "nntplib websocket websockets ssl paramiko boto3 pycurl xmlrpc socketserver wsgiref webbrowser antigravity"),
        (PARALLEL, "joblib celery multiprocessing concurrent.futures.process concurrent.futures.interpreter"),
        (PROCESSES, "pexpect pty"),
        (TERMINAL, "getpass readline curses termios tty tkinter turtle code cmd idlelib"),
        (DEBUGGER, "pdb bdb"),
        (PACKAGES, "pip ensurepip venv setuptools pkg_resources easy_install"),
        (SYSTEM, "resource psutil pwd grp syslog"),
        (MAPPINGS, "mmap shelve dbm"),
        (MACHINE_CODE, "numba llvmlite"),
    )
    for name in names.split()
}


def install(elsewhere):
    """Installs all explanations. Called at the end of preloading; afterwards nothing can be imported from files. `elsewhere` has the
    names of modules that workers with packages have.
    """
    _elsewhere.update(elsewhere)
    # Cache the values of the host, except its name. The processor type would be determined by running a program.
    platform._Processor.get = staticmethod(lambda: "")
    platform._uname_cache = platform.uname()._replace(node="lockhouse")
    files.State.on_refusal = _record_refusal
    for table, wrapped in (_REFUSED, _refuse), (_ABSENT, _explain_absence):
        for words, owner, names in table:
            owner = _owner_object(owner)
            for name in names.split():
                if owner is not None and hasattr(owner, name):
                    setattr(owner, name, wrapped(getattr(owner, name), words, owner))
    builtins.input = _refused_input
    builtins.help = _short_help
    socket.socket.__init__ = _refuse_new_sockets(socket.socket.__init__)
    type(os.environ).__getitem__ = _explain_missing_variable(type(os.environ).__getitem__)
    if "ctypes" in sys.modules:
        _refuse_callbacks(sys.modules["ctypes"])
    memory = sys.modules.get("lockhouse_module_memory")
    memory = [memory.ModuleMemoryFinder] if memory else []
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, ServerFinder, SkillFinder, *memory, DialectFinder, MissingModuleFinder]


def _owner_object(owner):
    module, _, name = owner.partition(":")
    module = sys.modules.get(module)
    return getattr(module, name, None) if name else module


def _refuse(original, words, owner):
    @functools.wraps(original)
    def refused(*args, **kwargs):
        _record_refusal(words)
        args = args[1:] if isinstance(owner, type) else args
        name = args[0] if args and owner is os and isinstance(args[0], (str, bytes, os.PathLike)) else None
        raise PermissionError(errno.EPERM, words, name and os.fspath(name))

    return refused


def _refuse_new_sockets(original):
    @functools.wraps(original)
    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        if fileno is None:  # socketpair() passes a descriptor; event loops need it.
            _record_refusal(NETWORK)
            raise PermissionError(errno.EPERM, NETWORK)
        original(self, family, type, proto, fileno)

    return __init__


def _refused_input(prompt="", /):
    raise EOFError(NO_INPUT)


def _short_help(thing=None, /):
    """Prints the documentation of an object."""  # pydoc would cost more than it is worth here.
    print(getattr(thing, "__doc__", None) or f"{thing!r} has no documentation")


def _explain_missing_variable(original):
    """Explains missing environment variables in the KeyError, and prints a note where the result would be None."""
    @functools.wraps(original)
    def __getitem__(self, name):
        try:
            return original(self, name)
        except KeyError:
            asker = sys._getframe(1)
            if "default" in asker.f_locals and asker.f_locals["default"] is None:  # Called by get, and by os.getenv.
                while asker.f_globals.get("__name__") in ("collections.abc", "_collections_abc", "os"):
                    asker = asker.f_back
                if is_code(asker.f_code.co_filename):
                    warn_once(ENVIRONMENT, "os.environ is empty")
            raise KeyError(f"{name}: {ENVIRONMENT}") from None

    return __getitem__


def _refuse_callbacks(ctypes):
    """Explains refused callbacks. Otherwise they would fail with a MemoryError, as if the memory were used up."""
    class _CFuncPtr(ctypes._CFuncPtr):
        _flags_ = 1  # cdecl. Subclasses have their own flags.

        def __new__(cls, *args):
            if len(args) == 1 and callable(args[0]):
                raise PermissionError(errno.EPERM, CALLBACKS)
            return super().__new__(cls, *args)

    ctypes._CFuncPtr = _CFuncPtr


_hidden_refusals = {}
# Callers that look for files but work without them, such as for the source of a frame; by module or function.
_IGNORED_CALLERS = ("linecache", "genericpath", "posixpath", "platform", "resolve")


def _explain_absence(original, words, owner):
    """Replaces a function by one that prints an explanation if the program asks for a file or program of the host."""
    @functools.wraps(original)
    def explaining(path, *args, **kwargs):
        answer = None if owner is shutil else original(path, *args, **kwargs)
        if not answer and (owner is shutil or isinstance(path, (str, bytes, os.PathLike)) and files.is_host_path(path)):
            caller = sys._getframe(1)
            if str(caller.f_globals.get("__name__")).startswith("pathlib"):
                caller = caller.f_back
            reason = files.reason(path) if words is FILES else words
            if reason is not None and is_code(caller.f_code.co_filename):
                warn_once(reason, f"{owner.__name__.replace('posixpath', 'os.path')}.{original.__name__} is {answer}")
        return answer

    return explaining


def _record_refusal(words):
    """Remembers a refusal within a library, which may hide it, as `configparser` does."""
    frame, function = sys._getframe(1), None
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("lockhouse_"):
        frame = frame.f_back
    while frame is not None and not is_code(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") in _IGNORED_CALLERS or frame.f_code.co_name in _IGNORED_CALLERS:
            return
        function, frame = frame, frame.f_back
    if frame is not None and function is not None:
        _hidden_refusals.setdefault(words, f"{function.f_globals.get('__name__')}.{function.f_code.co_name}")


def warn_of_hidden_refusals():
    """Prints the refusals that libraries have hidden, after a successful run."""
    for words, function in _hidden_refusals.items():
        warn_once(words, f"{function} was refused something")


class MissingModuleFinder:
    """The last finder in sys.meta_path: explains why a module cannot be imported."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None  # Called by importlib.util.find_spec, which expects None.
        raise ModuleNotFoundError(_missing_module_message(fullname), name=fullname)


def missing_module_reason(name):
    """The reason why a well-known module is not available; None for other modules."""
    return _MISSING_REASONS.get(name) or _MISSING_REASONS.get(name.partition(".")[0])


# Names of modules that workers with packages have, in workers without packages.
_elsewhere = set()
# Names under which packages are installed, if they differ from the names of their modules.
_DISTRIBUTIONS = {
    "sklearn": "scikit-learn", "PIL": "pillow", "bs4": "beautifulsoup4", "yaml": "pyyaml", "dateutil": "python-dateutil",
    "cv2": "opencv-python-headless", "docx": "python-docx", "pptx": "python-pptx", "attr": "attrs", "skimage": "scikit-image",
    "fitz": "pymupdf", "Levenshtein": "levenshtein", "mpl_toolkits": "matplotlib", "pylab": "matplotlib",
}
# Alternatives that are loaded, for packages that are not. A user can add the packages themselves.
_ALTERNATIVES = {
    name: words
    for words, names in (
        ("use lists of dicts, comprehensions, statistics and csv instead", "pandas polars pyarrow duckdb dask modin"),
        ("use math, statistics, fractions and random instead", "numpy scipy sympy sklearn torch tensorflow"),
        ("use html.parser or xml.etree.ElementTree instead", "bs4 lxml html5lib selectolax parsel"),
        ("use json instead", "yaml ruamel orjson ujson simplejson"),
        ("use datetime and zoneinfo instead", "dateutil pytz pendulum arrow tzlocal"),
        ("use print and f-strings instead", "tabulate rich colorama tqdm termcolor prettytable loguru"),
        ("use dataclasses instead", "pydantic attr attrs marshmallow"),
        ("use itertools and functools instead", "more_itertools toolz"),
        ("use a loop with time.sleep instead", "tenacity backoff retry"),
        ("use difflib instead", "fuzzywuzzy rapidfuzz thefuzz Levenshtein"),
        ("put values into the code instead", "dotenv environ decouple click typer"),
        ("return the numbers instead", "matplotlib seaborn plotly PIL cv2"),
        ("return the data, and judge it where this code was written", "openai anthropic litellm langchain transformers cohere mistralai"),
        (TOOL, "mcp fastmcp sqlalchemy psycopg2 psycopg pymongo redis pymysql slack_sdk googleapiclient notion_client "
                                    "stripe jira gitlab playwright selenium docker git openpyxl docx PyPDF2 pypdf"),
    )
    for name in names.split()
}


_TEXT_MAX = 100_000  # Characters of a program in which an import is looked for.
# Packages of MCP clients.
_CLIENTS = ("mcp", "fastmcp", "mcp_use", "langchain_mcp_adapters")


def is_elsewhere(name):
    """Whether workers with packages have a module, and this worker has not."""
    return name in _elsewhere


def _missing_module_message(name):
    parts = name.split(".")
    top, words = parts[0], missing_module_reason(name)
    # Import paths that similar products use.
    server = find_server(parts[1]) if top in ("servers", "mcp", "tools") and len(parts) > 1 else None
    if words is None and server is not None:
        words = f"the MCP server is at mcp_tools.{identifier(server)}"
    elif words is None and top in _CLIENTS and known_servers():
        server = _imported_server(top) or known_servers()[0]
        words = f"the MCP servers are connected already, without a client: write `from mcp_tools.{identifier(server)} import ...`; {servers_text()}"
    elif words is None:
        words = f"{PREFIX}: {missing_package_reason(name)}"
    return f"No module named {name!r}: {words}"


def _imported_server(package):
    """The server that the program imports from a package of an MCP client, as in `from mcp.github import ...`; None if there is none."""
    imports = re.findall(rf"(?m)^\s*(?:from|import)\s+{re.escape(package)}\b(.*)", program_text(_TEXT_MAX))
    return next(filter(None, (find_server(name) for words in imports for name in re.findall(r"\w+", words))), None)


def missing_package_reason(name):
    """Why a module cannot be imported, and what to do instead."""
    top = name.partition(".")[0]
    if top in _elsewhere:
        return (f"this worker was started without packages, because the program (in a session: its first one) has no statement that "
                f"imports them; write `import {top}` in the program, and use a new session")
    if top in sys.stdlib_module_names or top in sys.modules:
        ask = f"ask an administrator to add {name!r} under [python] preload in the configuration"
    else:
        ask = f"ask the user to run: lockhouse python add {_DISTRIBUTIONS.get(top, top)}"
    if top in _ALTERNATIVES:
        return f"it was not loaded before the worker was sealed; {_ALTERNATIVES[top]}, or {ask}"
    near = difflib.get_close_matches(name, {loaded for loaded in sys.modules if loaded[:1] != "_"}, 1, 0.75)
    suggestion = f"did you mean {near[0]}? Else " if near else ""
    return f"it was not loaded before the worker was sealed; {suggestion}use what is loaded, or {ask}"
