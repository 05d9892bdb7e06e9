//! Converts exceptions of user code into bounded error reports with positions in the submitted code.

use lockhouse_protocol::CodeError;
use rquickjs::{Ctx, Function, Object, Value};

use super::error_expression;
use super::runtime_error_hints::Hints;
use super::source_map::{Position, SourceMap};
use super::syntax_error_hints;
use super::traceback::{self, StackFrame};
use super::typescript::SyntaxError;

/// Maximum length of an error message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Maximum length of the message of an error's `cause`, in bytes.
const CAUSE_BYTES_MAX: usize = 200;

/// Maximum length of the name or the code of an error, in bytes.
const KIND_BYTES_MAX: usize = 100;

/// Maximum number of `cause` links reported for one error.
const CAUSES_MAX: usize = 3;

/// Creates an error report of the given kind and message, without position or traceback.
pub(super) fn code_error(kind: &str, message: impl Into<String>) -> CodeError {
    CodeError { kind: kind.to_owned(), message: message.into(), ..CodeError::default() }
}

/// Creates the error report of a syntax error.
pub(super) fn syntax_error(source: &str, error: SyntaxError) -> CodeError {
    let mut description = code_error("SyntaxError", error.message);
    truncate(&mut description.message, MESSAGE_BYTES_MAX);
    description.traceback = error.position.map(|position| traceback::position_with_excerpt(position, source));
    description.hint = syntax_error_hints::hint(source, &description.message, error.position);
    add_position(&mut description, error.position);
    description
}

/// Adds a traceback from a QuickJS stack to an error report, and the position of the innermost frame in the current
/// program. Omits the innermost frames of the stack if they are of the function `class`, the constructor of the error.
pub(super) fn add_traceback(error: &mut CodeError, stack: &str, source_map: Option<&SourceMap>, class: &str) {
    let is_constructor = |frame: &StackFrame| !class.is_empty() && frame.name == class;
    let frames: Vec<StackFrame> = traceback::frames(stack, source_map).skip_while(is_constructor).collect();
    add_position(error, traceback::position_in_program(&frames));
    error.traceback = (!frames.is_empty()).then(|| traceback::render(&frames, source_map));
}

/// Adds the position of an error to its report, and a traceback with the source line.
pub(super) fn add_position_with_excerpt(
    error: &mut CodeError,
    position: Option<Position>,
    source_map: Option<&SourceMap>,
) {
    add_position(error, position);
    error.traceback = position
        .zip(source_map)
        .map(|(position, source_map)| traceback::position_with_excerpt(position, source_map.source()));
}

/// Adds the line and column of an error to its report.
pub(super) fn add_position(error: &mut CodeError, position: Option<Position>) {
    error.line = position.map(|position| position.line);
    error.column = position.map(|position| position.column);
}

/// Creates the error report of any thrown value. Reading its properties may run code of the program, which
/// may throw or be interrupted; properties that cannot be read are omitted.
pub(super) fn describe_exception<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    value: &Value<'js>,
    source_map: Option<&SourceMap>,
) -> CodeError {
    let Some(object) = value
        .as_object()
        .filter(|object| value.is_error() || object.contains_key("message").unwrap_or(false))
    else {
        return describe_non_error(ctx, functions, value, source_map);
    };
    let read = |key: &str| {
        let property = object.get::<_, Value>(key).ok();
        let clip = if key == "message" { "clipMessage" } else { "clip" };
        let text = property.and_then(|property| call_for_text(ctx, functions, clip, &property));
        ctx.catch();
        text
    };
    let mut error =
        code_error(&read("name").unwrap_or_else(|| "Error".to_owned()), read("message").unwrap_or_default());
    // The message of the error that `Promise.any` throws is empty.
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
    let stack = read("stack").unwrap_or_default();
    let class = object.get::<_, Object>("constructor").and_then(|class| class.get::<_, String>("name"));
    let mut class = class.inspect_err(|_| drop(ctx.catch())).unwrap_or_default();
    if error.message.starts_with("class constructors must be invoked") {
        class = traceback::frames(&stack, source_map)
            .next()
            .map(|frame| frame.name.to_owned())
            .unwrap_or_default();
    }
    if error.message.is_empty() {
        error.message = "thrown without a message".to_owned();
    }
    add_traceback(&mut error, &stack, source_map, &class);
    let is_retryable =
        object.get::<_, bool>("retryable").inspect_err(|_| drop(ctx.catch())).unwrap_or_default();
    Hints { ctx, functions, source_map }.add(&mut error, is_retryable);
    if let Some(causes) = causes(ctx, functions, object, source_map) {
        error.traceback =
            Some(error.traceback.map_or(causes.clone(), |frames| format!("{frames}\n{causes}")));
    }
    error
}

/// Creates the error report of a thrown value that is not an Error.
fn describe_non_error<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    value: &Value<'js>,
    source_map: Option<&SourceMap>,
) -> CodeError {
    ctx.catch();
    let thrown =
        call_for_text(ctx, functions, "inspect", value).unwrap_or_else(|| value.type_name().to_owned());
    let mut error = code_error("Error", format!("the program threw {thrown}"));
    truncate(&mut error.message, MESSAGE_BYTES_MAX);
    let position =
        source_map.and_then(|source_map| error_expression::only_non_error_throw(source_map.source()));
    add_position_with_excerpt(&mut error, position, source_map);
    error.hint = Some("throw an Error, and its line is known: throw new Error(\"…\")".to_owned());
    error
}

/// Formats the chain of an error's `cause` errors, at most [`CAUSES_MAX`] of them: name, message and line of each.
/// Returns `None` if the error has no cause.
fn causes<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    object: &Object<'js>,
    source_map: Option<&SourceMap>,
) -> Option<String> {
    let mut texts = Vec::new();
    let mut next = object.get::<_, Option<Object>>("cause");
    while let (Ok(Some(cause)), true) = (&next, texts.len() < CAUSES_MAX) {
        let read = |key: &str| {
            let property = cause.get::<_, Value>(key).ok();
            let text = property.and_then(|property| call_for_text(ctx, functions, "clip", &property));
            ctx.catch();
            text.unwrap_or_default()
        };
        let (mut name, mut message, stack) = (read("name"), read("message"), read("stack"));
        truncate(&mut name, KIND_BYTES_MAX);
        truncate(&mut message, CAUSE_BYTES_MAX);
        let place = traceback::line(&stack, source_map).map(|line| format!(" (line {line})"));
        texts.push(format!("  caused by {name}: {message}{}", place.unwrap_or_default()));
        next = cause.get::<_, Option<Object>>("cause");
    }
    ctx.catch();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Calls one of the engine's own JavaScript functions with a value. Returns the text that the function returns, or
/// `None` if the call fails.
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

fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
}
