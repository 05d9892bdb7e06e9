"""Configuration files with all servers: an AI client's server list, Lockhouse's configuration, and a policy."""

import json
from pathlib import Path

from world import World

from server import Server

# Start timeout for a server that starts together with thirty others on a small machine.
PATIENCE_SECONDS = 600


class Settings:
    def __init__(self, servers: list[Server], place: Path, address: str, patient: bool):
        """`patient`: the servers are in Lockhouse's configuration, with a longer start timeout than the default."""
        world = World(place)
        self.place = place
        self.places = {"@PLACE@": place, "@FILES@": world.files, "@REPOSITORY@": world.repository, "@API@": address}
        entries = {server.name: self.entry(server) for server in servers}
        timeouts = {
            server.name: server.start_timeout_s or (PATIENCE_SECONDS if patient else None) for server in servers
        }
        listed = {name: entry for name, entry in entries.items() if not timeouts[name]}
        tables = [table(name, entry, timeouts[name]) for name, entry in entries.items() if timeouts[name]]
        self._write("servers.json", json.dumps({"theme": "dark", "mcpServers": listed}, indent=2))
        self._write("config.toml", "\n".join(tables))
        self._write("policy.toml", "version = 1\n" + "\n".join(f'[servers.{name}]\nallow = ["*"]' for name in entries))

    def _write(self, name: str, text: str):
        (self.place / name).write_text(text)

    def filled(self, text: str) -> str:
        for name, meant in self.places.items():
            text = text.replace(name, str(meant))
        return text

    def entry(self, server: Server) -> dict:
        program, *arguments = server.package.command()
        return {
            "command": program,
            "args": arguments + [self.filled(argument) for argument in server.arguments],
            "env": {name: self.filled(value) for name, value in server.environment.items()},
        }

    def options(self) -> list[str]:
        files = {"--config": "config.toml", "--servers": "servers.json", "--policy": "policy.toml"}
        return [word for option, name in files.items() for word in (option, str(self.place / name))]


def table(name: str, entry: dict, start_timeout_s: int) -> str:
    """Returns the entry as a TOML table. JSON strings and lists are valid TOML."""
    keys = {"command": entry["command"], "args": entry["args"], "start_timeout_seconds": start_timeout_s}
    keys |= {f"env.{variable}": value for variable, value in entry["env"].items()}
    return "\n".join([f"[servers.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""])
