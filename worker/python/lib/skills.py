"""Saved skills: functions that code saves for later programs.

    import skills
    skills.save(weekly_report, "The report of a week.", tags=["report"])

    from skills.weekly_report import weekly_report
"""

import builtins
import sys
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType

import _lockhouse
import lockhouse_sources as sources
from lockhouse_dialects import meanings
from lockhouse_calls import NAMES_MAX, ToolError, ask, call, search_limit as _search_limit
from lockhouse_servers import _imported, missing_name_error
from lockhouse_values import to_json

__path__ = []
__all__ = ["list", "run", "save", "search"]
_PREFIX = "skills."


def save(what, description=None, *others, tags=None, name=None, code=None, tests=None):
    """Saves a function for later programs, with the imports, helpers and constants that it uses.

    save(weekly_report, "What it does.", ["report"]) takes a function or a class of this program;
    save("weekly_report", "What it does.", code="...") and save("weekly_report", "What it does.", "...", ["report"]) take source. `tests` is source that imports the skill and asserts.
    A person may have to approve it: the result is {"name", "version", "state": "saved" or "draft"}.
    """
    code, tags = _code_and_tags(what, others, code, tags)
    if isinstance(what, str) and code is None and name is not None:
        code, what = what, None  # The source of a module, and its name.
    elif isinstance(what, str) and code is None:
        what = vars(sys.modules["__main__"]).get(what, what)
    if isinstance(what, str):
        name = what if name is None else name
    elif what is not None:
        from lockhouse_skill_source import source_of
        name = getattr(what, "__name__", None) if name is None else name
        code = source_of(what) if code is None else code
        description = _first_sentence(what) if description is None else description
    if not isinstance(code, str):
        raise TypeError(f"there is no function {name} in this program; give the function itself, or its source as code=")
    compile(code, f"skills/{name}", "exec", dont_inherit=True)
    if tests is not None:
        compile(tests, f"skills/{name}, tests", "exec", _ALLOW_AWAIT, dont_inherit=True)
    tags = [tags] if isinstance(tags, str) else builtins.list(tags)
    skill = {"name": name, "description": description, "tags": tags, "language": "python", "code": code, "tests": tests}
    arguments = {key: value for key, value in skill.items() if value is not None}
    return call("skills", "save", (to_json(arguments, strict=True), []))


def _code_and_tags(what, others, code, tags):
    """The code and the tags of `save(what, description, tags)` and `save(name, description, code, tags)`."""
    if len(others) < 2:
        if others and tags is not None:
            raise TypeError("save() got tags twice: write save(name, description, code, tags)")
        return code, (others[0] if others else tags) or ()
    is_source = len(others) == 2 and isinstance(what, str) and isinstance(others[0], str)
    if not is_source or not isinstance(others[1], (builtins.list, tuple)) or code is not None or tags is not None:
        raise TypeError("save() with four arguments takes name, description and code as text, and a list of tags")
    return others


_ALLOW_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT: tests are programs, skills are modules.


def _first_sentence(thing):
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0] or None


def search(query="", limit=_lockhouse.SEARCH_LIMIT_DEFAULT):
    """Searches saved skills, best match first: name, description, tags, version, language, signature and import."""
    return ask(_lockhouse.search_skills, str(query), _search_limit(limit))


def list():
    """Lists all saved skills, in the form of `search`."""
    return search("", _lockhouse.SEARCH_LIMIT_MAX)


def run(name, /, *arguments, **named):
    """Calls the function of a saved skill by the name of the skill: run("weekly_report", "acme", days=7)."""
    name = str(name).replace("-", "_")
    __import__(_PREFIX + name)
    module = sys.modules[_PREFIX + name]
    functions = {key: value for key, value in vars(module).items() if isinstance(value, FunctionType) and value.__module__ == module.__name__}
    wanted = name.replace("_", "").lower()
    found = [value for key, value in functions.items() if key.replace("_", "").lower() == wanted]
    public = [value for key, value in functions.items() if key[:1] != "_"]
    found = found or (public if len(public) == 1 else [])
    if not found:
        names = ", ".join(value.__name__ for value in public[:NAMES_MAX]) or "none"
        raise AttributeError(f"the skill {name} has no function of its name; import one of its functions: {names}")
    return found[0](*arguments, **named)


class Skill(ModuleType):
    """The module of a skill. It can be called like the function of its name, as after `from skills import weekly_report`."""

    def __call__(self, *arguments, **named):
        return run(self.__name__[len(_PREFIX):], *arguments, **named)


class SkillFinder:
    """Import finder for `skills.<name>`. A skill is an ordinary module whose code has the permissions of the program."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if not fullname.startswith(_PREFIX):
            return None
        name = fullname[len(_PREFIX):]
        try:
            skill = ask(_lockhouse.load_skill, name)
        except ToolError as error:
            kind = ModuleNotFoundError if error.code in ("not_found", "unknown_tool") else ImportError
            raise kind(str(error), name=fullname) from None
        if skill["language"] != "python":
            raise ImportError(f"the skill {skill['name']} is written in {skill['language']}: only {skill['language']} can import "
                              f"it, and this program is Python", name=fullname)
        return ModuleSpec(fullname, cls, origin=sources.SKILL + name, loader_state=skill)

    @staticmethod
    def create_module(spec):
        _imported.append(spec.name)
        module = Skill(spec.name)
        module.__version__ = spec.loader_state["version"]
        module.__file__ = spec.origin  # Python uses it to report circular imports.
        return module

    @staticmethod
    def exec_module(module):
        code = module.__spec__.loader_state["code"]
        file = sources.add_skill(module.__name__[len(_PREFIX):], code)
        tree = sources.parse(code, file)
        compiled = compile(tree, file, "exec", dont_inherit=True)
        vars(module).update(meanings(compiled, tree, ()))
        exec(compiled, vars(module))


def __getattr__(name):
    if name[:2] == "__":
        raise AttributeError(name)
    try:
        __import__(_PREFIX + name)
    except ModuleNotFoundError as error:
        if error.name != _PREFIX + name:
            raise
        raise missing_name_error(str(error), name, "skills", 2) from None
    return sys.modules[_PREFIX + name]
