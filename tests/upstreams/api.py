"""A stub of the web services that some servers use, so that their calls work without a network."""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = "<html><body><article><h1>Lock</h1><p>The upper gate is open.</p></article></body></html>"
ANSWERS = {
    "/page": PAGE,
    "/api/v4/projects/41": {"id": 41, "name": "lock house", "path_with_namespace": "canal/lock-house"},
    "/v1/users/me": {"object": "user", "id": "41", "type": "bot", "name": "lock keeper", "bot": {}},
    "/v2/scrape": {"success": True, "data": {"markdown": "The upper gate is open.", "metadata": {"statusCode": 200}}},
    "/chart": {"success": True, "resultObj": "https://charts.example/lock.png"},
    "/context7/v2/libs/search": {
        "results": [{"id": "/canal/lock", "title": "Lock", "description": "Gates in order", "totalSnippets": 3}]
    },
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = ANSWERS.get(self.path.partition("?")[0])
        body = (found if isinstance(found, str) else json.dumps(found or {"message": "404 Not Found"})).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html" if isinstance(found, str) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Serves the stub and yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
