"""Resources and prompts of the MCP servers: what besides tools a server offers, as far as the policy permits it."""

import sys

import _lockhouse
from lockhouse_calls import ask, read, server_named
from lockhouse_streams import flush, require_room
from lockhouse_values import contents_of, prompt_of, to_json


def list_resources(server):
    """The permitted resources of a server, as dicts with `uri` and `name`; templates have `uriTemplate` instead."""
    return _listed(_lockhouse.list_resources, server)


def read_resource(server, uri):
    """A resource by its URI: a str for text, a Blob for bytes, each with `uri` and `mime_type`; a list for several."""
    server, uri = _named(server), str(uri)
    flush()
    require_room()
    return read(contents_of, _lockhouse.read_resource(server, uri), server, uri)


def list_prompts(server):
    """The permitted prompts of a server, as dicts with `name` and `arguments`."""
    return _listed(_lockhouse.list_prompts, server)


def get_prompt(server, name, arguments=None, /, **named):
    """A prompt: a dict with `messages`, each with `role` and `content`. Arguments are strings: a dict, or by name."""
    server, name = _named(server), str(name)
    given = to_json({**(arguments or {}), **named}, strict=True)
    flush()
    require_room(len(given))
    return read(prompt_of, _lockhouse.get_prompt(server, name, given), server, name)


def _listed(request, server):
    listed = ask(request, _named(server))
    if listed["incomplete"]:
        print(f"{server} lists more than these {len(listed['items'])}: the rest is left out", file=sys.stderr)
    return listed["items"] + listed["templates"]


def _named(server):
    """A server by its name, or as the module that stands for it."""
    name = getattr(server, "__server__", None) or str(server)
    return server_named(name) or name


def bound(function, module, server):
    """The function for one server, as that server's module has it."""
    def of_this_server(*args, **named):
        return function(server, *args, **named)

    async def of_this_server_async(*args, **named):
        import asyncio
        return await asyncio.to_thread(function, server, *args, **named)

    made = of_this_server_async if module.startswith("mcp_tools.aio.") else of_this_server
    made.__name__ = made.__qualname__ = function.__name__
    made.__module__, made.__doc__ = module, function.__doc__
    return made


FUNCTIONS = {function.__name__: function for function in (list_resources, read_resource, list_prompts, get_prompt)}
