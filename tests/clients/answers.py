"""What Lockhouse answers to a call, apart from the AI client that shows it: the text blocks and files of a tool result, in their order."""

import re
from dataclasses import dataclass

# What differs in each run. Everything else of an answer is compared as it is.
VARYING = [
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
    (r"\b[0-9a-f]{32}\b", "HANDLE"),
    (r"\bcall_\d+_\d+\b", "call_N"),
    (r"(?<=Still running \()\d+\.\d s", "N s"),
    (r"(?<=Wall time)(:?) [\d.]+ seconds", r"\1 N seconds"),
]
KEPT = {"stdio": "until this client disconnects, at most 60 min", "http": "within 60 min"}


def normalise(text):
    """Replaces handles, ids and times by names."""
    for pattern, name in VARYING:
        text = re.sub(pattern, name, text)
    return text


@dataclass(frozen=True)
class File:
    """A file in an answer. An image is in the answer itself, any other file is a link."""

    name: str
    mime_type: str
    data: bytes

    @property
    def is_image(self):
        return self.mime_type.startswith("image/")

    @property
    def placeholder(self):
        """How the value names the file, which is the first one of its answer."""
        return f'{{"content":1,"mime_type":"{self.mime_type}","bytes":{len(self.data)},"name":"{self.name}"}}'


@dataclass(frozen=True)
class Answer:
    """A whole answer. `value` is a complete value as JSON; without one, `sentence` has its place."""

    value: str | None = None
    sentence: str | None = None
    output: str | None = None
    changed: str | None = None
    files: tuple[File, ...] = ()
    is_error: bool = False

    def blocks(self, form, transport):
        """The blocks in an answer form. The form `value` has nothing beside a complete value but files. Over stdio, files are gone with
        the connection."""
        if self.value is None:
            first = self.sentence
        else:
            first = f"Value: {self.value}" if form == "labelled" else self.value
        saved = "; ".join(f"{file.name} ({len(file.data)} bytes, handle HANDLE)" for file in self.files)
        beside = [
            self.output,
            f"May have changed something: {self.changed}" if self.changed else None,
            f"Files: {saved}. `lockhouse result HANDLE --out DIR` saves one {KEPT[transport]}." if saved else None,
        ]
        if form == "value" and self.value is not None:
            beside = []
        # A client may join the blocks without a separator.
        return [first, *self.files, *(f"\n{text}" for text in beside if text is not None)]
