//! What user code threw, as people read it: in bounds, and with positions of the submitted code.

use lockhouse_protocol::CodeError;
use rquickjs::{Ctx, Function, Object, Value};

use super::positions::{Place, Positions};
use super::typescript::{GENERATED, GENERATED_SKILL, SyntaxError};

/// What people see as the file's name.
const SHOWN: &str = "code.ts";
/// The same of a skill, whose name follows.
const SHOWN_SKILL: &str = "skills/";

/// The file's name of an earlier program of the session, around the number of its run.
const EARLIER: &str = "code-";
const EXTENSION: &str = ".ts";

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The longest name of an error, in bytes.
const KIND_BYTES_MAX: usize = 100;

/// The longest name of a function in a traceback, in characters.
const NAME_CHARACTERS_MAX: usize = 80;

/// The longest traceback, in frames.
const FRAMES_MAX: usize = 20;

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

/// An error that the engine itself reports.
pub(super) fn plain(kind: &str, message: impl Into<String>) -> CodeError {
    CodeError { kind: kind.to_owned(), message: message.into(), ..CodeError::default() }
}

/// A program that does not even parse.
pub(super) fn syntax(error: SyntaxError) -> CodeError {
    let mut description = plain("SyntaxError", error.message);
    truncate(&mut description.message, MESSAGE_BYTES_MAX);
    point(&mut description, error.place);
    description
}

/// Adds where it happened, from a stack of QuickJS.
pub(super) fn locate(error: &mut CodeError, stack: &str, positions: Option<&Positions>) {
    point(error, own_place(stack, positions));
    let frames = user_frames(stack, positions);
    error.traceback = (!frames.is_empty()).then(|| frames.join("\n"));
}

/// Adds where it happened.
pub(super) fn point(error: &mut CodeError, place: Option<Place>) {
    error.line = place.map(|place| place.line);
    error.column = place.map(|place| place.column);
}

/// Describes any value that can be thrown. Reading it can run code of the program, which may throw again or be
/// stopped: what cannot be read is left out.
pub(super) fn thrown<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    value: &Value<'js>,
    positions: Option<&Positions>,
) -> CodeError {
    let Some(object) = value
        .as_object()
        .filter(|object| value.is_error() || object.contains_key("message").unwrap_or(false))
    else {
        ctx.catch();
        let shown =
            call_for_text(ctx, functions, "inspect", value).unwrap_or_else(|| value.type_name().to_owned());
        let mut error = plain("Error", format!("the program threw {shown}"));
        truncate(&mut error.message, MESSAGE_BYTES_MAX);
        error.hint = Some("throw an Error, and its line is known: throw new Error(\"…\")".to_owned());
        return error;
    };
    let read = |key: &str| {
        let property = object.get::<_, Value>(key).ok();
        let text = property.and_then(|property| call_for_text(ctx, functions, "clip", &property));
        ctx.catch();
        text
    };
    let mut error =
        plain(&read("name").unwrap_or_else(|| "Error".to_owned()), read("message").unwrap_or_default());
    // `Promise.any` says nothing else.
    if error.kind == "AggregateError" && error.message.is_empty() {
        let reasons = object.get::<_, Value>("errors").ok();
        let shown = reasons.and_then(|reasons| call_for_text(ctx, functions, "inspect", &reasons));
        error.message = format!("all promises were rejected: {}", shown.unwrap_or_default());
    }
    truncate(&mut error.kind, KIND_BYTES_MAX);
    truncate(&mut error.message, MESSAGE_BYTES_MAX);
    if error.kind == "ToolError" {
        error.code = read("code").filter(|code| code.len() <= KIND_BYTES_MAX);
    }
    locate(&mut error, &read("stack").unwrap_or_default(), positions);
    if let Some(words) = words(&error) {
        error.message = format!("{}: {ABSENT}: {words}", error.message);
    }
    error.hint = hint(&error);
    error
}

/// Text from one of the realm's functions.
fn call_for_text<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    name: &str,
    value: &Value<'js>,
) -> Option<String> {
    let text = functions.get::<_, Function>(name).and_then(|function| function.call((value.clone(),)));
    if text.is_err() {
        ctx.catch();
    }
    text.ok().flatten()
}

/// Why it fails here and not elsewhere, and what to do instead.
fn words(error: &CodeError) -> Option<&'static str> {
    if error.kind == "ReferenceError"
        && let Some(name) = error.message.strip_suffix(" is not defined")
    {
        return ABSENT_NAMES.iter().find(|(names, _)| names.contains(&name)).map(|(_, words)| *words);
    }
    let about = |(kind, part, _): &&(&str, &str, &str)| error.kind == *kind && error.message.contains(part);
    RIDDLES.iter().find(about).map(|(.., words)| *words)
}

fn hint(error: &CodeError) -> Option<String> {
    let too_deep = error.kind == "RangeError" && error.message == "Maximum call stack size exceeded";
    too_deep.then(|| "write it as a loop, with an array as the stack".to_owned())
}

/// The program's line in a stack of QuickJS: that of its innermost frame.
pub(super) fn line(stack: &str, positions: Option<&Positions>) -> Option<u32> {
    own_place(stack, positions).map(|place| place.line)
}

/// The innermost place in the program that runs.
fn own_place(stack: &str, positions: Option<&Positions>) -> Option<Place> {
    frames(stack, positions).find(|frame| frame.of == Of::Program).map(|frame| frame.place)
}

/// The frames of a stack that are the program's own, in its own positions.
pub(super) fn user_frames(stack: &str, positions: Option<&Positions>) -> Vec<String> {
    frames(stack, positions)
        .map(|Frame { name, of, place: Place { line, column } }| {
            let file = of.shown();
            match name {
                "" | "<anonymous>" => format!("    at {file}:{line}:{column}"),
                _ => {
                    let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
                    format!("    at {name} ({file}:{line}:{column})")
                }
            }
        })
        .collect()
}

/// Where a frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of<'s> {
    /// In the program that runs.
    Program,
    /// In an earlier one of its session.
    Earlier(u32),
    /// In a skill that is imported.
    Skill(&'s str),
}

impl Of<'_> {
    fn shown(self) -> String {
        match self {
            Self::Program => SHOWN.to_owned(),
            Self::Earlier(run) => format!("{EARLIER}{run}{EXTENSION}"),
            Self::Skill(name) => format!("{SHOWN_SKILL}{name}{EXTENSION}"),
        }
    }
}

/// A frame of the code that people wrote.
struct Frame<'s> {
    name: &'s str,
    of: Of<'s>,
    place: Place,
}

/// The program's frames. Those that were translated before stay as they are.
fn frames<'s>(stack: &'s str, positions: Option<&'s Positions>) -> impl Iterator<Item = Frame<'s>> {
    let frame = move |line: &'s str| {
        let frame = line.trim().strip_prefix("at ")?.trim_end_matches(')');
        let (before, column) = frame.rsplit_once(':')?;
        let (before, line) = before.rsplit_once(':')?;
        let place = Place { line: line.parse().ok()?, column: column.parse().ok()? };
        let (name, file) = before.rsplit_once('(').unwrap_or(("", before));
        let name = name.trim_end();
        if let Some(skill) = file.strip_prefix(GENERATED_SKILL) {
            return Some(Frame {
                name,
                of: Of::Skill(skill),
                place: positions?.skill(skill)?.submitted(place)?,
            });
        }
        if let Some(run) = file.strip_prefix(GENERATED) {
            let run = run.strip_prefix('-').and_then(|run| run.parse().ok());
            let (earlier, place) = positions?.submitted_in(run, place)?;
            return Some(Frame { name, of: earlier.map_or(Of::Program, Of::Earlier), place });
        }
        let stem = file.strip_suffix(EXTENSION)?;
        let of = match (stem.strip_prefix(EARLIER), stem.strip_prefix(SHOWN_SKILL)) {
            _ if file == SHOWN => Of::Program,
            (Some(run), _) => Of::Earlier(run.parse().ok()?),
            (_, Some(skill)) => Of::Skill(skill),
            _ => return None,
        };
        Some(Frame { name, of, place })
    };
    stack.lines().filter_map(frame).take(FRAMES_MAX)
}

fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
}
