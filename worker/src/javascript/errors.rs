//! What user code threw, as people read it: in bounds, and with positions of the submitted code.

use lockhouse_protocol::CodeError;
use rquickjs::{Ctx, Function, Object, Value};

use super::excerpts::excerpt;
use super::hints::Hints;
use super::mistakes;
use super::positions::{Place, Positions};
use super::subjects;
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

/// Frames alike that are shown one after the other.
const ALIKE_MAX: usize = 3;

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
    description.traceback = error.place.map(|place| at(place, source));
    description.hint = mistakes::hint(source, &description.message, error.place).map(str::to_owned);
    point(&mut description, error.place);
    description
}

/// Adds where it happened, from a stack of QuickJS. `class` is the error's own: making it is no step of the program's.
pub(super) fn locate(error: &mut CodeError, stack: &str, positions: Option<&Positions>, class: &str) {
    let is_made = |frame: &Frame| !class.is_empty() && frame.name == class;
    let frames: Vec<Frame> = frames(stack, positions).skip_while(is_made).collect();
    point(error, frames.iter().find(|frame| frame.of == Of::Program).map(|frame| frame.place));
    error.traceback = (!frames.is_empty()).then(|| traceback(&frames, positions));
}

/// Adds where it happened, with the line.
pub(super) fn mark(error: &mut CodeError, place: Option<Place>, positions: Option<&Positions>) {
    point(error, place);
    error.traceback = place.zip(positions).map(|(place, positions)| at(place, positions.source()));
}

/// Frames with their lines, innermost first.
fn traceback(frames: &[Frame], positions: Option<&Positions>) -> String {
    let mut told: Vec<String> = Vec::new();
    for alike in frames.chunk_by(|one, other| one == other) {
        told.extend(alike.iter().take(ALIKE_MAX).map(|frame| frame.with_line(positions)));
        if alike.len() > ALIKE_MAX {
            told.push(format!("    … {} more like it", alike.len() - ALIKE_MAX));
        }
    }
    told.join("\n")
}

/// A place of the program and its line.
fn at(place: Place, source: &str) -> String {
    let frame = Frame { name: "", of: Of::Program, place }.alone();
    excerpt(source, place).map_or(frame.clone(), |excerpt| format!("{frame}\n{excerpt}"))
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
        let thrown =
            call_for_text(ctx, functions, "inspect", value).unwrap_or_else(|| value.type_name().to_owned());
        let mut error = plain("Error", format!("the program threw {thrown}"));
        truncate(&mut error.message, MESSAGE_BYTES_MAX);
        let place = positions.and_then(|positions| subjects::only_odd_throw(positions.source()));
        mark(&mut error, place, positions);
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
    let stack = read("stack").unwrap_or_default();
    let class = object.get::<_, Object>("constructor").and_then(|class| class.get::<_, String>("name"));
    let mut class = class.inspect_err(|_| drop(ctx.catch())).unwrap_or_default();
    if error.message.starts_with("class constructors must be invoked") {
        class = frames(&stack, positions).next().map(|frame| frame.name.to_owned()).unwrap_or_default();
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
        let frames: Vec<Frame> = frames(&stack, positions).collect();
        let frames = traceback(&frames, positions);
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
    frames(stack, positions).map(|frame| frame.alone()).collect()
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
#[derive(PartialEq, Eq)]
struct Frame<'s> {
    name: &'s str,
    of: Of<'s>,
    place: Place,
}

impl Frame<'_> {
    fn alone(&self) -> String {
        let (file, Place { line, column }) = (self.of.shown(), self.place);
        match self.name {
            "" | "<anonymous>" => format!("    at {file}:{line}:{column}"),
            name => {
                let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
                format!("    at {name} ({file}:{line}:{column})")
            }
        }
    }

    /// With the line of the text that it is in.
    fn with_line(&self, positions: Option<&Positions>) -> String {
        let of = match self.of {
            Of::Program => positions,
            Of::Earlier(run) => positions.and_then(|positions| positions.earlier(run)),
            Of::Skill(name) => positions.and_then(|positions| positions.skill(name)),
        };
        let frame = self.alone();
        let line = of.and_then(|positions| excerpt(positions.source(), self.place));
        line.map_or(frame.clone(), |line| format!("{frame}\n{line}"))
    }
}

/// The program's frames. Those that were translated before stay as they are.
fn frames<'s>(stack: &'s str, positions: Option<&'s Positions>) -> impl Iterator<Item = Frame<'s>> {
    let frame = move |(depth, line): (usize, &'s str)| {
        let frame = line.trim().strip_prefix("at ")?.trim_end_matches(')');
        let (before, column) = frame.rsplit_once(':')?;
        let (before, line) = before.rsplit_once(':')?;
        let place = Place { line: line.parse().ok()?, column: column.parse().ok()? };
        let (name, file) = before.rsplit_once('(').unwrap_or(("", before));
        let name = name.trim_end();
        if let Some(skill) = file.strip_prefix(GENERATED_SKILL) {
            let positions = positions?.skill(skill)?;
            // All but the innermost are at a call.
            let place = positions.of_call(positions.submitted(place)?, depth == 0);
            return Some(Frame { name, of: Of::Skill(skill), place });
        }
        if let Some(run) = file.strip_prefix(GENERATED) {
            let run = run.strip_prefix('-').and_then(|run| run.parse().ok());
            let positions = positions?;
            let (earlier, place) = positions.submitted_in(run, place)?;
            let of = earlier.map_or(Some(positions), |run| positions.earlier(run))?;
            let place = of.of_call(place, depth == 0);
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
    stack.lines().enumerate().filter_map(frame).take(FRAMES_MAX)
}

fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
}
