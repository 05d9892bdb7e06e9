"""Hints for programs with syntax errors."""

import ast
import html
import keyword
import re
import sys

from lockhouse_excerpts import current_line, program_text


def hint_for_syntax(error, message, location):
    line = current_line(error.lineno if type(error.lineno) is int else 0)
    if re.search(r"^\s*```", program_text(), re.MULTILINE):
        return "send the program alone: no other text, and no ``` before and after it"
    found = hint_for_entities(line) or _hint_for_escapes(line, message) or _hint_for_quotes(line)
    if found:
        return found
    for part, words in _MESSAGES:
        if part in message:
            return words(line) if callable(words) else words
    if _TYPESCRIPT.search(program_text()):
        return 'this looks like TypeScript: send it with language "typescript", or write it in Python'
    if _OPERATORS.search(line):
        return "in Python it is `and`, `or`, `not`, ==, !=, and None, True, False"
    named = re.match(r"\s*(\w+)\s*=[^=]", line)
    if named and keyword.iskeyword(named[1]):
        return f"{named[1]} is a word of the language: use another name, such as {named[1]}_"
    if re.match(r"\s*(else|elif|except|finally)\b", line):
        return f"`{line.split()[0].rstrip(':')}` needs the block that it belongs to right above it, at the same indentation"
    argument = re.search(r"\w\((?:.*,)?\s*([A-Za-z_]\w*)\s*:[^=]", line)
    return f"a named argument has =, as in {argument[1]}=..." if argument and "lambda" not in line else None


_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|apos|#39);")


def hint_for_entities(line):
    """What to write for the HTML entities in a line of code; None if it has none."""
    found = sorted(set(_ENTITY.findall(line)))
    words = ", ".join(f"{html.unescape(entity)} instead of {entity}" for entity in found)
    return f"the program was sent with HTML entities: write {words}" if found else None


def _hint_for_escapes(line, message):
    """What to write for line breaks and quotes that were sent with a backslash."""
    if "unexpected character after line continuation" not in message or _NESTED_QUOTE.search(line):
        return None
    if "\\n" in line:
        return r"a line break was sent as the two characters \n: send the program with real line breaks"
    return "quotes were sent with a backslash before them: send them without it" if re.search(r"""\\["']""", line) else None


# An f-string with its own quote within braces.
_NESTED_QUOTE = re.compile(r"""(?<!\w)[rR]?[fF][rR]?(["'])(?:(?!\1)[^{])*\{(?:(?!\1)[^}])*\1""")


def _hint_for_quotes(line):
    found = sys.version_info < (3, 12) and _NESTED_QUOTE.search(line)
    if not found:
        return None
    quote, other = found[1], "'" if found[1] == '"' else '"'
    # The key of a subscript is the usual case.
    corrected = re.sub(rf"\[{quote}([^{quote}\]]*){quote}\]", rf"[{other}\1{other}]", line.strip())
    is_example = corrected != line.strip() and len(corrected) <= 120 and _is_valid(corrected)
    example = corrected if is_example else "assign the expression in {} to a variable first"
    return f"before Python 3.12, the quotes of an f-string cannot occur within its {{}}: {example}"


def _is_valid(line):
    """Whether a line is valid Python, at least as the beginning of a block."""
    try:
        ast.parse(f"{line} pass" if line.endswith(":") else line)
        return True
    except (SyntaxError, ValueError):
        return False


def _hint_for_return(line):
    if line[:1].isspace():
        return "only a function has return: assign the value to a variable in each branch, and end the program with this variable"
    return "the last expression is the result; no return is needed"


_MESSAGES = (
    ("'return' outside function", _hint_for_return),
    ("'await' outside async function", "write `async def`, and `await` where it is called; at the top level await works too"),
    ("asynchronous comprehension outside", "write `async def`, and `await` where it is called"),
    ("f-string expression part cannot include a backslash", "assign the expression in {} to a variable first"),
    ("invalid character '\u201c'", 'write straight quotes: " or \''),
    ("invalid character '\u201d'", 'write straight quotes: " or \''),
    ("invalid character '\u2018'", 'write straight quotes: " or \''),
    ("invalid character '\u2019'", 'write straight quotes: " or \''),
    ("inconsistent use of tabs", "indent with spaces alone"),
    ("unindent does not match", "indent each line of a block by the same spaces as the first"),
)
_TYPESCRIPT = re.compile(
    r"^\s*(?:export\s+)?(?:const|let|var|interface|enum)\s+[\w{\[$]|^\s*(?:async\s+)?function\b.*\{|=>|===|^\s*//"
    r"|^\s*import\s+.*\sfrom\s+['\"]|^\s*type\s+\w+\s*=\s*[{|]", re.MULTILINE)
_OPERATORS = re.compile(r"&&|\|\||(?<![<>=!])!(?!=)|!==|\+\+|--")
