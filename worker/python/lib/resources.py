"""Resources and prompts of the MCP servers, as far as the policy permits them."""

import sys

import _lockhouse
from lockhouse_calls import ask, find_server, unwrap_reply
from lockhouse_streams import flush, require_room
from lockhouse_results import prompt_value, resource_value
from lockhouse_values import to_json


def list_resources(server):
    """Lists the permitted resources of a server, as dicts with `uri` and `name`; templates have `uriTemplate` instead."""
    return _list(_lockhouse.list_resources, server)


def read_resource(server, uri):
    """Reads a resource by URI: a str for text, a Blob for bytes, each with `uri` and `mime_type`; a list for several parts."""
    server, uri = server_name(server), str(uri)
    flush()
    require_room()
    return unwrap_reply(resource_value, _lockhouse.read_resource(server, uri), server, uri)


def list_prompts(server):
    """Lists the permitted prompts of a server, as dicts with `name` and `arguments`."""
    return _list(_lockhouse.list_prompts, server)


def get_prompt(server, name, arguments=None, /, **named):
    """Gets a prompt: a dict with `messages`, each with `role` and `content`. Arguments are strings, in a dict or by name."""
    server, name = server_name(server), str(name)
    arguments_json = to_json({**(arguments or {}), **named}, strict=True)
    flush()
    require_room(len(arguments_json))
    return unwrap_reply(prompt_value, _lockhouse.get_prompt(server, name, arguments_json), server, name)


def _list(request, server):
    listed = ask(request, server_name(server))
    if listed["incomplete"]:
        print(f"{server} lists more than these {len(listed['items'])}: the rest is left out", file=sys.stderr)
    return listed["items"] + listed["templates"]


def server_name(server):
    """Name of a server that is given by name or as its module."""
    name = getattr(server, "__server__", None) or str(server)
    return find_server(name) or name


def bind_to_server(function, module, server):
    """Binds a function to one server, as a function of that server's module."""
    def bound(*args, **named):
        return function(server, *args, **named)

    async def bound_async(*args, **named):
        import asyncio
        return await asyncio.to_thread(function, server, *args, **named)

    result = bound_async if module.startswith("mcp_tools.aio.") else bound
    result.__name__ = result.__qualname__ = function.__name__
    result.__module__, result.__doc__ = module, function.__doc__
    return result


FUNCTIONS = {function.__name__: function for function in (list_resources, read_resource, list_prompts, get_prompt)}
