//! Why a program fails here and not elsewhere, what the engine's words leave out, and what to do instead.

use lockhouse_protocol::CodeError;
use rquickjs::function::IntoArgs;
use rquickjs::{Ctx, FromJs, Function, Object};

use super::positions::{Place, Positions};
use super::subjects::{self, Failing};
use super::traceback;

/// What everything absent is; a reason and a way out follow.
const ABSENT: &str = "not available in the Lockhouse sandbox";

/// Names that code from elsewhere takes for granted, why they are not there, and what to do instead.
const ABSENT_NAMES: [(&[&str], &str); 13] = [
    (
        &["process"],
        "there are no environment variables, arguments or exit; put values into the code, print with console.log, end \
         with return, or use a tool of an MCP server instead",
    ),
    (
        &["Deno", "Bun", "fs", "path", "os", "child_process", "std", "__dirname", "__filename"],
        "there are no files and no processes; use a tool of an MCP server instead",
    ),
    (
        &["module", "exports"],
        "a program is alone; the last expression is its result, use that or return instead",
    ),
    (&["global", "self"], "this is no Node.js and no browser; use globalThis instead"),
    (
        &["Buffer", "Blob", "File", "FileReader"],
        "use Uint8Array, TextEncoder, TextDecoder, atob and btoa instead",
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
        &["URL"],
        "use a regular expression to take an address apart, and URLSearchParams for query strings, instead",
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
    (
        &["Intl", "Temporal"],
        "there are no locales and no time zones; use toFixed, padStart and toISOString, or Python's zoneinfo, instead",
    ),
    (&["WebAssembly", "DOMParser"], "use JavaScript, or Python and its standard library, instead"),
];

/// What the engine says without the sandbox in mind: kind, part of the message, why and what to do instead.
const RIDDLES: [(&str, &str, &str); 3] = [
    ("SyntaxError", "import.meta", "a program has no file and no address; put values into the code instead"),
    (
        "ReferenceError",
        "could not load module",
        "code that is made at run time has no import, and there are no packages and files; use require(\"mcp_tools\") \
         for tools, or an import of the program, instead",
    ),
    ("TypeError", "cannot block in this thread", "there is one thread; use await and setTimeout instead"),
];

/// What an error is about, as far as the realm and the program's text tell it.
pub(super) struct Hints<'a, 'js> {
    pub(super) ctx: &'a Ctx<'js>,
    pub(super) functions: &'a Object<'js>,
    pub(super) positions: Option<&'a Positions>,
}

impl<'js> Hints<'_, 'js> {
    /// Adds what is known to a located error.
    pub(super) fn add(&self, error: &mut CodeError, is_retryable: bool) {
        if let Some(words) = absence(error) {
            error.message = format!("{}: {ABSENT}: {words}", error.message);
            return;
        }
        error.hint = match error.kind.as_str() {
            "RangeError" if error.message == "Maximum call stack size exceeded" => {
                Some("write it as a loop, with an array as the stack".to_owned())
            }
            "ReferenceError" => self.for_name(&error.message),
            "TypeError" => self.for_type(error),
            "SyntaxError" => self.for_json(error),
            "ToolError" if is_retryable => Some("the same call may succeed later".to_owned()),
            _ => None,
        };
    }

    fn source(&self) -> &str {
        self.positions.map_or("", Positions::source)
    }

    fn for_name(&self, message: &str) -> Option<String> {
        if let Some(name) = message.strip_suffix(" is not initialized") {
            return Some(format!("{name} has a value further below only: declare it before this line"));
        }
        let name = message.strip_suffix(" is not defined")?;
        self.ask("meantName", (name, subjects::names(self.source())))
    }

    /// QuickJS names neither what is called nor what lacks a property: the program's text does.
    fn for_type(&self, error: &mut CodeError) -> Option<String> {
        let place = Place { line: error.line?, column: error.column.unwrap_or(1) };
        let find = |failing| subjects::find(self.source(), place, failing);
        if let Some((name, of)) = missing_property(&error.message) {
            let subject = find(Failing::Property(name)).map(|subject| format!("{subject} is {of}"));
            let about = subject
                .into_iter()
                .chain(self.about_calls().or_else(|| Some("look before you use it, as with ?.".into())));
            return Some(about.collect::<Vec<_>>().join("; "));
        }
        let (failing, words) = match error.message.as_str() {
            "not a function" => (Failing::Call, "is not a function"),
            "not a constructor" => (Failing::New, "is not a constructor"),
            "value is not iterable" => (Failing::Iteration, "is not iterable"),
            "Cannot convert undefined or null to object" => {
                (Failing::Destructuring, "is undefined or null, and cannot be taken apart")
            }
            _ => return None,
        };
        let subject = find(failing)?;
        error.message = format!("{subject} {words}");
        let method =
            subject.rsplit_once('.').map(|(_, name)| name).filter(|_| matches!(failing, Failing::Call));
        let meant = match method {
            Some(name) => self.ask("meantMethod", (name,)),
            None => self.ask("meantServer", (subject.as_str(),)),
        };
        if meant.is_some() {
            return meant;
        }
        self.about_calls()
    }

    fn for_json(&self, error: &CodeError) -> Option<String> {
        let place = Place { line: error.line?, column: error.column.unwrap_or(1) };
        let at = place.byte(self.source())?;
        let called = ["JSON.parse", "parse", "json"].iter().any(|name| self.source()[at..].starts_with(name));
        let words = match error.message.as_str() {
            _ if !called => return None,
            "unexpected token: 'object'" | "unexpected token: 'undefined'" => {
                "it is a value already, and no text: use it as it is"
            }
            _ => "the text is not JSON: use it as text, or look at it before parsing",
        };
        Some(words.to_owned())
    }

    /// What the last calls answered; or, of one that is still under way, that it is.
    fn about_calls(&self) -> Option<String> {
        let waiting: Option<Vec<String>> = self.ask("waiting", ());
        if let Some([subject, stack]) = waiting.as_deref()
            && !subject.is_empty()
        {
            let line = traceback::line(stack, self.positions)
                .map(|line| format!(" (line {line})"))
                .unwrap_or_default();
            return Some(format!("{subject}{line} has not answered yet: write await before the call"));
        }
        self.ask("answered", ())
    }

    /// What one of the realm's functions says. The program may have replaced what that uses.
    fn ask<A: IntoArgs<'js>, V: FromJs<'js>>(&self, name: &str, arguments: A) -> Option<V> {
        let asked = self
            .functions
            .get::<_, Function>(name)
            .and_then(|function| function.call::<_, Option<V>>(arguments));
        asked.inspect_err(|_| drop(self.ctx.catch())).ok().flatten()
    }
}

/// Of a message of QuickJS: the property, and what has none.
fn missing_property(message: &str) -> Option<(&str, &str)> {
    let (name, of) = message.strip_prefix("cannot read property '")?.rsplit_once("' of ")?;
    Some((name, of))
}

/// Why it fails here and not elsewhere, and what to do instead.
fn absence(error: &CodeError) -> Option<&'static str> {
    if error.kind == "ReferenceError"
        && let Some(name) = error.message.strip_suffix(" is not defined")
    {
        return ABSENT_NAMES.iter().find(|(names, _)| names.contains(&name)).map(|(_, words)| *words);
    }
    let about = |(kind, part, _): &&(&str, &str, &str)| error.kind == *kind && error.message.contains(part);
    RIDDLES.iter().find(about).map(|(.., words)| *words)
}
