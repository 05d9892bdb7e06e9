"""MCP servers over stdio with fixed answers, which imitate well-known servers of the same names.

Usage: canned.py SERVER DIRECTORY FORM
DIRECTORY/calls  a line is added for each call: server, tool and arguments, as JSON
FORM             how results are written: `any`, structured content of any kind, as the newest era has it; `wrapped`, a list
                 as an object with one member, as Python's libraries do in earlier ones; `text`, JSON in a text
"""

import inspect
import json
import sys
import threading
import time
from pathlib import Path

ERA, NEWEST = "2025-11-25", "2026-07-28"
# Fields of every result of the newest era. In that era structured content is any JSON value, before it an object.
READ = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


class Arxiv:
    """Papers, each with a year and how often it is cited."""

    def search_papers(self, query: str, max_results: int = 10) -> list:
        """Papers about something, the best first."""
        return [self._paper(query, number) for number in range(max_results)]

    def search(self, query: str) -> list:
        """Three papers about something."""
        return [self._paper(query, number) for number in range(3)]

    @staticmethod
    def _paper(query, number):
        authors = [f"A. Author {number % 9}", f"B. Author {number % 7}"]
        abstract = f"We study {query} and report what we found. " * 20
        facts = {"year": 2018 + number % 8, "citations": number * 37 % 400, "authors": authors}
        return {"id": f"{2018 + number % 8}.{number:05}", "title": f"{query.title()} {number}", **facts, "abstract": abstract}


class Chroma:
    """A store of documents."""

    def __init__(self):
        self.collections = {}

    def query(self, collection: str, query: str, n_results: int = 10) -> list:
        """Documents of a collection that have to do with a query."""
        return self.collections.get(collection, [])[:n_results]

    def add_documents(self, collection: str, documents: list) -> dict:
        """Adds documents to a collection."""
        self.collections.setdefault(collection, []).extend(documents)
        return {"added": len(documents), "total": len(self.collections[collection])}


class Docker:
    """Containers."""

    def ps(self, all: bool = False) -> list:
        """Containers, each with its status."""
        return [{"name": "api", "status": "unhealthy"}, {"name": "db", "status": "healthy"}]


class K8s:
    """Deployments."""

    def restart_deployment(self, name: str, namespace: str = "default") -> dict:
        """Restarts all pods of a deployment."""
        return {"deployment": name, "namespace": namespace, "restarted": 3}


class Slack:
    """Messages to channels."""

    def send_message(self, channel: str, text: str) -> dict:
        """Sends a message."""
        return {"channel": channel, "sent": True, "length": len(text)}


class Gdrive:
    """Sheets."""

    def get_sheet(self, sheet_id: str) -> list:
        """All rows of a sheet."""
        states = ["shipped", "pending", "paid", "returned"]
        return [
            {"order": number, "status": states[number * 7 % 13 % 4], "customer": f"customer {number % 97}", "sheet": sheet_id}
            for number in range(10_000)
        ]


class Postgres:
    """A database."""

    def query(self, sql: str) -> list:
        """The rows that a query gives."""
        countries = ["CZ", "DE", "AT"]
        return [{"id": number, "country": countries[number % 3], "revenue": number * 10} for number in range(300)]


class Sheets:
    """Spreadsheets."""

    def update(self, spreadsheet_id: str, data: dict) -> dict:
        """Replaces what is in a spreadsheet."""
        return {"updated": spreadsheet_id, "columns": sorted(data)}


class Supabase:
    """A project's database."""

    def list_tables(self, schemas: list) -> list:
        """Tables of some schemas."""
        return [{"schema": schema, "name": name} for schema in schemas for name in ("users", "orders", "products")]

    def execute_sql(self, query: str) -> list:
        """The rows that a query gives."""
        return [{"id": number, "name": f"user {number}", "email": f"user{number}@example.com"} for number in range(10)]

    def list_migrations(self) -> list:
        """Migrations, the oldest first."""
        return [{"version": "001", "name": "create_users"}, {"version": "002", "name": "create_orders"}]


class Github:
    """Repositories and their issues."""

    def __init__(self):
        self.created = []

    def create_issue(self, owner: str, repo: str, title: str, body: str = "") -> dict:
        """Opens an issue."""
        self.created.append(title)
        return {"number": len(self.created), "url": f"https://github.com/{owner}/{repo}/issues/{len(self.created)}"}

    def list_issues(self, owner: str, repo: str, state: str = "open", page: int = 1, per_page: int = 30) -> list:
        """Issues of a repository, a page at a time."""
        names = ["bug", "docs", "question"]
        issues = [
            {"number": number, "title": f"Issue {number}", "labels": [names[number % 3]], "comments": number * 5 % 17}
            for number in range(1, 75)
        ]
        return issues[(page - 1) * per_page : page * per_page]


class Context7:
    """Documentation of libraries."""

    def get_docs_by_name(self, library: str, topic: str = "") -> dict:
        """What the documentation of a library says about a topic."""
        text = f"{library}: {topic}. " * 200
        return {"library": library, "topic": topic, "tokens": len(text) // 4, "text": text}


class Weather:
    """Forecasts."""

    def forecast(self, city: str, days: int = 1) -> dict:
        """The weather of a city on the coming days."""
        if city == "Atlantis":
            raise ValueError("no such city: Atlantis")
        return {"city": city, "days": [{"day": day, "celsius": (len(city) * 7 + day * 3) % 30} for day in range(days)]}

    def raw(self, city: str) -> "Content":
        """The same as the station sends it: JSON, as text."""
        return Content(json.dumps(self.forecast(city)))


class Reports:
    """What takes long, and what is large."""

    def build(self, days: int) -> dict:
        """A report of so many days; one of more than a week takes its time."""
        time.sleep(30 if days > 7 else 0)
        return {"days": days, "rows": days * 24}

    def export(self, year: int, month: int = 0) -> "Content":
        """Everything of a year, or of one of its months."""
        return Content("x" * (50_000 if month else 9_000_000))


class Notes:
    """Notes, which are resources, and a prompt about them."""

    RESOURCES = {"note://groceries": "milk\nbread\napples", "note://ideas": "a house with two gates"}
    PROMPTS = {"summarize": "Summarize the note {uri} in {words} words."}


class Filesystem:
    """A few files."""

    FILES = {"/path/to/file.txt": "The first line.\nThe second line.\n", "/path/to/data.json": '{"answer": 42}\n'}

    def read_file(self, file_path: str, offset: int = 0) -> "Content":
        """The text of a file, from a line on."""
        return Content(self._text(file_path).split("\n", offset)[offset])

    def list_files(self, directory: str) -> list:
        """Paths of the files in a directory."""
        return [path for path in self.FILES if path.startswith(directory)]

    def write(self, path: str, content: dict) -> dict:
        """Writes a value to a file, as JSON."""
        return {"path": path, "bytes": len(json.dumps(content))}

    def _text(self, path):
        if path not in self.FILES:
            raise ValueError(f"{path}: no such file")
        return self.FILES[path]


class Content(str):
    """A text result without structured content, as most servers return it."""


def servers():
    others = (Content, Path)
    return {name.lower(): kind for name, kind in globals().items() if inspect.isclass(kind) and kind not in others}


def tools(kind, form):
    """Returns tool definitions from the names, annotations and docstrings of the methods."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = [parameter for parameter in inspect.signature(method).parameters.values() if parameter.name != "self"]
        properties = {parameter.name: {"type": KINDS[parameter.annotation]} for parameter in parameters}
        for parameter in parameters:
            if parameter.default is not parameter.empty:
                properties[parameter.name]["default"] = parameter.default
        required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        reads = name.startswith(("search", "query", "list", "get", "read", "ps"))
        tool = {"name": name, "description": method.__doc__, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}
        if form == "wrapped" and wraps(method):
            wrapper = {"type": "object", "properties": {"result": {"title": "Result", "type": "array"}}}
            tool["outputSchema"] = {**wrapper, "required": ["result"], "title": f"{name}Output"}
        yield tool


def wraps(method):
    return inspect.signature(method).return_annotation is list


def call(server, name, arguments, form):
    try:
        result = getattr(server, name)(**arguments)
    except Exception as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    if isinstance(result, Content):
        return {"content": [{"type": "text", "text": result}]}
    content = {"content": [{"type": "text", "text": json.dumps(result)}]}
    if form == "text":
        return content
    wrapped = form == "wrapped" and wraps(getattr(server, name))
    return {**content, "structuredContent": {"result": result} if wrapped else result}


def answer(server, form, message):
    parameters = message.get("params") or {}
    match message["method"]:
        case "server/discover" if form == "any":
            return {"supportedVersions": [NEWEST], "capabilities": capabilities(server), **READ}
        case "initialize":
            offers = {"capabilities": capabilities(server), "serverInfo": {"name": "canned", "version": "1"}}
            return {"protocolVersion": ERA, **offers}
        case "tools/list":
            return {"tools": list(tools(type(server), form)), **READ}
        case "tools/call":
            return {**call(server, parameters["name"], parameters.get("arguments") or {}, form), **READ}
        case "ping":
            return {}
    return offered(server, message["method"], parameters) if hasattr(server, "RESOURCES") else None


def capabilities(server):
    return {"tools": {}, **({"resources": {}, "prompts": {}} if hasattr(server, "RESOURCES") else {})}


def offered(server, method, parameters):
    """Answers the requests about resources and prompts."""
    match method:
        case "resources/list":
            names = [{"uri": uri, "name": uri.removeprefix("note://"), "mimeType": "text/plain"} for uri in server.RESOURCES]
            return {"resources": names, **READ}
        case "resources/templates/list":
            return {"resourceTemplates": [], **READ}
        case "resources/read":
            text = server.RESOURCES[parameters["uri"]]
            return {"contents": [{"uri": parameters["uri"], "mimeType": "text/plain", "text": text}], **READ}
        case "prompts/list":
            arguments = [{"name": "uri", "required": True}, {"name": "words", "required": True}]
            return {"prompts": [{"name": name, "arguments": arguments} for name in server.PROMPTS], **READ}
        case "prompts/get":
            text = server.PROMPTS[parameters["name"]].format(**parameters["arguments"])
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], **READ}
    return None


writing = threading.Lock()


def serve(name, server, place, form, message):
    if message["method"] == "tools/call":
        made = {"server": name, "tool": message["params"]["name"], "arguments": message["params"].get("arguments")}
        with writing, open(Path(place) / "calls", "a") as file:
            file.write(json.dumps(made) + "\n")
    result = answer(server, form, message)
    outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    with writing:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


def main():
    name, place, form = sys.argv[1:]
    server = servers()[name]()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=serve, args=(name, server, place, form, message), daemon=True).start()


if __name__ == "__main__":
    main()
