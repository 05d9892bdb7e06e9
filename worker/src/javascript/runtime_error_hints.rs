//! Hints for runtime errors: what is missing in the sandbox, which expression failed, and what to do instead.

use lockhouse_protocol::CodeError;
use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, FromJs, Function, Object};

use super::error_expression::{self, FailedOperation};
use super::source_map::{Position, SourceMap};
use super::syntax_error_hints;
use super::traceback;

/// Text that introduces the explanation of a feature that does not exist in the sandbox.
const ABSENT: &str = "not available in the Lockhouse sandbox";

/// Globals of other JavaScript environments, each with the reason why it is missing and an alternative.
const ABSENT_NAMES: [(&[&str], &str); 13] = [
    (
        &["process"],
        "there are no environment variables, arguments or exit; put values into the code, print with console.log, end \
         with return, or use a tool of an MCP server instead",
    ),
    (
        &["Deno", "Bun", "os", "child_process", "std", "__dirname", "__filename"],
        "there are no files of the host and no processes; use `files` for files in memory, or a tool of an MCP server \
         instead",
    ),
    (
        &["fs", "path"],
        "it is a module, and its files are in memory; use `import fs from \"node:fs\"` or `import path from \
         \"node:path\"` instead",
    ),
    (
        &["module", "exports"],
        "a program is alone; the last expression is its result, use that or return instead",
    ),
    (&["global", "self"], "this is no Node.js and no browser; use globalThis instead"),
    (
        &["Blob", "File", "FileReader"],
        "use Buffer, Uint8Array, TextEncoder, TextDecoder, atob and btoa instead",
    ),
    (
        &[
            "window",
            "document",
            "navigator",
            "location",
            "history",
            "screen",
            "$",
            "jQuery",
            "React",
            "Image",
            "chrome",
        ],
        "there is no browser; use a tool of an MCP server instead",
    ),
    (
        &["alert", "confirm", "prompt"],
        "there is nobody to ask; print with console.log and put values into the code instead",
    ),
    (
        &["localStorage", "sessionStorage", "indexedDB", "caches"],
        "nothing is stored; keep data in variables, or use a tool of an MCP server instead",
    ),
    (
        &["Headers", "Request", "Response", "FormData", "axios", "AbortController", "AbortSignal"],
        "there is no network; use a tool of an MCP server instead, and Promise.race with setTimeout for a time limit",
    ),
    (
        &[
            "Worker",
            "SharedWorker",
            "MessageChannel",
            "BroadcastChannel",
            "EventTarget",
            "Event",
            "CustomEvent",
            "ReadableStream",
            "WritableStream",
            "requestAnimationFrame",
            "requestIdleCallback",
        ],
        "there is one thread and nothing to listen to; use functions, Promise.all and setTimeout instead",
    ),
    (&["Temporal"], "use Date and Intl.DateTimeFormat, or Python's datetime and zoneinfo, instead"),
    (&["WebAssembly", "DOMParser"], "use JavaScript, or Python and its standard library, instead"),
];

/// Engine messages whose cause is the sandbox, although they do not mention it: error name, part of the
/// message, and explanation.
const UNCLEAR_MESSAGES: [(&str, &str, &str); 3] = [
    ("SyntaxError", "import.meta", "a program has no file and no address; put values into the code instead"),
    (
        "ReferenceError",
        "could not load module",
        "code that is made at run time has no import, and there are no packages and files; use require(\"mcp_tools\") \
         for tools, or an import of the program, instead",
    ),
    ("TypeError", "cannot block in this thread", "there is one thread; use await and setTimeout instead"),
];

/// Hint for a calculation with numbers and a BigInt.
const BIGINT: &str = "an integer beyond 2^53 in a result is a BigInt: calculate with BigInts alone, such as x + 1n, or use \
                      Number(x) where lost digits do not matter";

/// Creates hints for an error, from the JavaScript state of the run and the text of the program.
pub(super) struct Hints<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) functions: &'a Object<'js>,
    pub(super) source_map: Option<&'a SourceMap>,
}

impl<'js> Hints<'_, 'js> {
    /// Adds a hint to an error. If the error is about a feature that the sandbox lacks, extends the message of the
    /// error instead. `is_retryable` tells whether the error is that of a tool call that may succeed later.
    pub(super) fn add(&self, error: &mut CodeError, is_retryable: bool) {
        if let Some(explanation) = absence_explanation(error) {
            error.message = format!("{}: {ABSENT}: {explanation}", error.message);
            return;
        }
        error.hint = match error.kind.as_str() {
            "RangeError" if error.message == "Maximum call stack size exceeded" => {
                Some("write it as a loop, with an array as the stack".to_owned())
            }
            "ReferenceError" => self.hint_for_name(error),
            "TypeError" => self.hint_for_type(error),
            "SyntaxError" => self.hint_for_json(error),
            "ToolError" if is_retryable => Some("the same call may succeed later".to_owned()),
            _ => None,
        };
    }

    fn source(&self) -> &str {
        self.source_map.map_or("", SourceMap::source)
    }

    fn hint_for_name(&self, error: &CodeError) -> Option<String> {
        let message = error.message.as_str();
        if let Some(name) = message.strip_suffix(" is not initialized") {
            return Some(format!("{name} has a value further below only: declare it before this line"));
        }
        let name = message.strip_suffix(" is not defined")?;
        let line = error.line.and_then(|line| self.source().lines().nth(line.checked_sub(1)? as usize));
        let line = line.unwrap_or_default();
        if line.contains(&format!("&{name};")) {
            return syntax_error_hints::entities_hint(line);
        }
        if is_named_argument(line, name) {
            return Some(format!("named arguments are one object: f({{ {name}: value }})"));
        }
        let member = member_of(line, name).unwrap_or_default();
        self.call_realm("suggestName", (name, error_expression::bound_names(self.source()), member, line))
    }

    /// Finds the expression that caused a TypeError, and names it in the message of `error` or in the returned hint.
    /// QuickJS's own message names neither a called expression nor the object of a missing property.
    fn hint_for_type(&self, error: &mut CodeError) -> Option<String> {
        if error.message.contains("BigInt") && error.message.contains("convert") {
            return Some(BIGINT.to_owned());
        }
        let position = Position { line: error.line?, column: error.column.unwrap_or(1) };
        let find = |operation| error_expression::find(self.source(), position, operation);
        if let Some((name, of)) = missing_property(&error.message) {
            let subject = find(FailedOperation::Property(name)).map(|subject| format!("{subject} is {of}"));
            let about = subject
                .into_iter()
                .chain(self.hint_from_calls().or_else(|| Some("look before you use it, as with ?.".into())));
            return Some(about.collect::<Vec<_>>().join("; "));
        }
        let (operation, explanation) = match error.message.as_str() {
            "not a function" => (FailedOperation::Call, "is not a function"),
            "not a constructor" => (FailedOperation::New, "is not a constructor"),
            "value is not iterable" => (FailedOperation::Iteration, "is not iterable"),
            "Cannot convert undefined or null to object" => {
                (FailedOperation::Destructuring, "is undefined or null, and cannot be taken apart")
            }
            _ => return None,
        };
        let subject = find(operation)?;
        error.message = format!("{subject} {explanation}");
        let method = subject
            .rsplit_once('.')
            .map(|(_, name)| name)
            .filter(|_| matches!(operation, FailedOperation::Call));
        let suggestion = match method {
            Some(name) => self.call_realm("suggestMethod", (name,)),
            None => self.call_realm("suggestServer", (subject.as_str(),)),
        };
        if suggestion.is_some() {
            return suggestion;
        }
        self.hint_from_calls()
    }

    fn hint_for_json(&self, error: &CodeError) -> Option<String> {
        let position = Position { line: error.line?, column: error.column.unwrap_or(1) };
        let at = position.to_byte(self.source())?;
        let called = ["JSON.parse", "parse", "json"].iter().any(|name| self.source()[at..].starts_with(name));
        let explanation = match error.message.as_str() {
            _ if !called => return None,
            "unexpected token: 'object'" | "unexpected token: 'undefined'" => {
                "it is a value already, and no text: use it as it is"
            }
            _ => "the text is not JSON: use it as text, or look at it before parsing",
        };
        Some(explanation.to_owned())
    }

    /// Returns a hint about a call that was not awaited, or else a description of the results of the most recent calls.
    /// Returns `None` if there are no such calls.
    fn hint_from_calls(&self) -> Option<String> {
        let waiting: Vec<String> = self.call_realm("waiting", ()).unwrap_or_default();
        unanswered_call(&waiting, self.source_map).or_else(|| self.call_realm("describeAnswers", ()))
    }

    /// Calls one of the engine's JavaScript functions. Returns `None` if the function returns null or fails: the
    /// program may have replaced built-in functions that it uses.
    fn call_realm<A: IntoArgs<'js>, V: FromJs<'js>>(&self, name: &str, arguments: A) -> Option<V> {
        let answer = self
            .functions
            .get::<_, Function>(name)
            .and_then(|function| function.call::<_, Option<V>>(arguments));
        answer.inspect_err(|_| drop(self.ctx.catch())).ok().flatten()
    }
}

/// Returns whether a line assigns to `name` among the arguments of a call, as in `f(name=1)`.
fn is_named_argument(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(start, _)| {
        let before = line[..start].trim_end();
        let after = line[start + name.len()..].trim_start();
        before.ends_with(['(', ','])
            && after.starts_with('=')
            && !after.starts_with("==")
            && !after.starts_with("=>")
    })
}

/// Returns the name of the property that a line reads of `name`, as in `name.member`.
fn member_of<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = line.split_once(&format!("{name}."))?;
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(after.len());
    after.get(..end)
}

/// Describes a call that the program has not awaited. `waiting` are its subject and its stack; both are empty if there is
/// no such call.
pub(super) fn unanswered_call(waiting: &[String], source_map: Option<&SourceMap>) -> Option<String> {
    let [subject, stack] = waiting else { return None };
    let line = traceback::line(stack, source_map).map(|line| format!(" (line {line})")).unwrap_or_default();
    (!subject.is_empty())
        .then(|| format!("{subject}{line} has not answered yet: write await before the call"))
}

/// Parses QuickJS's message `cannot read property 'NAME' of undefined`. Returns the property name, and `undefined` or
/// `null`. Returns `None` for any other message.
fn missing_property(message: &str) -> Option<(&str, &str)> {
    let (name, of) = message.strip_prefix("cannot read property '")?.rsplit_once("' of ")?;
    Some((name, of))
}

/// Returns the explanation of an error that only occurs in the sandbox; `None` for any other error.
fn absence_explanation(error: &CodeError) -> Option<&'static str> {
    if error.kind == "ReferenceError"
        && let Some(name) = error.message.strip_suffix(" is not defined")
    {
        return ABSENT_NAMES
            .iter()
            .find(|(names, _)| names.contains(&name))
            .map(|(_, explanation)| *explanation);
    }
    let about = |(kind, part, _): &&(&str, &str, &str)| error.kind == *kind && error.message.contains(part);
    UNCLEAR_MESSAGES.iter().find(about).map(|(.., explanation)| *explanation)
}
