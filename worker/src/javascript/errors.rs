//! What user code threw, as people read it: in bounds, and with positions of the submitted code.

use lockhouse_protocol::CodeError;
use rquickjs::{Ctx, Function, Object, Value};

use super::hints::Hints;
use super::mistakes;
use super::positions::{Place, Positions};
use super::subjects;
use super::traceback::{self, StackFrame};
use super::typescript::SyntaxError;

/// The longest message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The longest name of an error, in bytes.
const KIND_BYTES_MAX: usize = 100;

/// Causes of an error that are told.
const CAUSES_MAX: usize = 3;

/// An error that the engine itself reports.
pub(super) fn plain(kind: &str, message: impl Into<String>) -> CodeError {
    CodeError { kind: kind.to_owned(), message: message.into(), ..CodeError::default() }
}

/// A program that does not even parse.
pub(super) fn syntax(source: &str, error: SyntaxError) -> CodeError {
    let mut description = plain("SyntaxError", error.message);
    truncate(&mut description.message, MESSAGE_BYTES_MAX);
    description.traceback = error.place.map(|place| traceback::place_with_line(place, source));
    description.hint = mistakes::hint(source, &description.message, error.place).map(str::to_owned);
    point(&mut description, error.place);
    description
}

/// Adds where it happened, from a stack of QuickJS. `class` is the error's own: making it is no step of the program's.
pub(super) fn locate(error: &mut CodeError, stack: &str, positions: Option<&Positions>, class: &str) {
    let is_made = |frame: &StackFrame| !class.is_empty() && frame.name == class;
    let frames: Vec<StackFrame> = traceback::frames(stack, positions).skip_while(is_made).collect();
    point(error, traceback::place_in_program(&frames));
    error.traceback = (!frames.is_empty()).then(|| traceback::with_lines(&frames, positions));
}

/// Adds where it happened, with the line.
pub(super) fn mark(error: &mut CodeError, place: Option<Place>, positions: Option<&Positions>) {
    point(error, place);
    error.traceback =
        place.zip(positions).map(|(place, positions)| traceback::place_with_line(place, positions.source()));
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
        return thrown_value(ctx, functions, value, positions);
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
    let stack = read("stack").unwrap_or_default();
    let class = object.get::<_, Object>("constructor").and_then(|class| class.get::<_, String>("name"));
    let mut class = class.inspect_err(|_| drop(ctx.catch())).unwrap_or_default();
    if error.message.starts_with("class constructors must be invoked") {
        class = traceback::frames(&stack, positions)
            .next()
            .map(|frame| frame.name.to_owned())
            .unwrap_or_default();
    }
    if error.message.is_empty() {
        error.message = "thrown without a message".to_owned();
    }
    locate(&mut error, &stack, positions, &class);
    let is_retryable =
        object.get::<_, bool>("retryable").inspect_err(|_| drop(ctx.catch())).unwrap_or_default();
    Hints { ctx, functions, positions }.add(&mut error, is_retryable);
    if let Some(causes) = causes(ctx, functions, object, positions) {
        error.traceback =
            Some(error.traceback.map_or(causes.clone(), |frames| format!("{frames}\n{causes}")));
    }
    error
}

/// Describes what was thrown and is no error.
fn thrown_value<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    value: &Value<'js>,
    positions: Option<&Positions>,
) -> CodeError {
    ctx.catch();
    let thrown =
        call_for_text(ctx, functions, "inspect", value).unwrap_or_else(|| value.type_name().to_owned());
    let mut error = plain("Error", format!("the program threw {thrown}"));
    truncate(&mut error.message, MESSAGE_BYTES_MAX);
    let place = positions.and_then(|positions| subjects::only_odd_throw(positions.source()));
    mark(&mut error, place, positions);
    error.hint = Some("throw an Error, and its line is known: throw new Error(\"…\")".to_owned());
    error
}

/// The causes of an error, with where they happened.
fn causes<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    object: &Object<'js>,
    positions: Option<&Positions>,
) -> Option<String> {
    let mut told = Vec::new();
    let mut next = object.get::<_, Option<Object>>("cause");
    while let (Ok(Some(cause)), true) = (&next, told.len() < CAUSES_MAX) {
        let read = |key: &str| {
            let property = cause.get::<_, Value>(key).ok();
            let text = property.and_then(|property| call_for_text(ctx, functions, "clip", &property));
            ctx.catch();
            text.unwrap_or_default()
        };
        let (mut name, mut message, stack) = (read("name"), read("message"), read("stack"));
        truncate(&mut name, KIND_BYTES_MAX);
        truncate(&mut message, MESSAGE_BYTES_MAX / 8);
        let frames: Vec<StackFrame> = traceback::frames(&stack, positions).collect();
        let frames = traceback::with_lines(&frames, positions);
        told.push(format!("  caused by {name}: {message}\n{frames}").trim_end().to_owned());
        next = cause.get::<_, Option<Object>>("cause");
    }
    ctx.catch();
    (!told.is_empty()).then(|| told.join("\n"))
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

fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
}
