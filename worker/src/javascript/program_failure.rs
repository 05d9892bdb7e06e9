//! Builds the outcomes of programs that end without a value: errors, interrupts and promises that never settle.

use lockhouse_protocol::{CodeError, Outcome};
use lockhouse_worker::signals::Interrupt;
use rquickjs::{Ctx, Error, FromJs, Function, Object, Persistent, Value};

use super::errors;
use super::source_map::{Position, SourceMap};

/// Why a program ended without a value.
pub(super) enum ProgramFailure {
    /// An error of the engine's Rust code, or of QuickJS. For [`Error::Exception`], the context holds the
    /// exception.
    Engine(Error),
    /// The program threw this value.
    Exception(Persistent<Value<'static>>),
    /// The program awaits something that can never happen, or an interrupt stopped it.
    Stuck,
    /// An error in the program that the engine found itself, such as a syntax error.
    Report(Box<CodeError>),
}

impl From<Error> for ProgramFailure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl ProgramFailure {
    /// Replaces [`Error::Exception`] by the exception itself, which it takes out of the context.
    pub(super) fn with_exception(self, ctx: &Ctx<'_>) -> Self {
        match self {
            Self::Engine(Error::Exception) => Self::Exception(Persistent::save(ctx, ctx.catch())),
            other => other,
        }
    }

    /// Creates the outcome of an interrupted program, with the position at which it ran or waited.
    pub(super) fn into_interrupted_outcome<'js>(
        self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        source_map: Option<&SourceMap>,
        interrupt: Interrupt,
    ) -> Outcome {
        let thrown = match self {
            Self::Exception(value) => {
                value.restore(ctx).map(|value| errors::describe_exception(ctx, functions, &value, source_map))
            }
            _ => Ok(CodeError::default()),
        };
        let thrown = thrown.unwrap_or_default();
        let (kind, mut message) = match interrupt {
            Interrupt::Deadline => ("Timeout", "the program was stopped at its deadline".to_owned()),
            Interrupt::Cpu => ("CpuLimit", "the program used up its CPU time".to_owned()),
        };
        let mut error = errors::code_error(kind, "");
        if thrown.line.is_some() {
            (error.line, error.column, error.traceback) = (thrown.line, thrown.column, thrown.traceback);
        } else if let Some((subject, stack)) = call_realm(ctx, functions, "waiting").map(into_pair)
            && !subject.is_empty()
        {
            message = format!("{message} while it waited for {subject}");
            errors::add_traceback(&mut error, &stack, source_map, "");
        } else {
            errors::add_position_with_excerpt(
                &mut error,
                await_position(ctx, functions, source_map),
                source_map,
            );
        }
        error.message = message;
        match interrupt {
            Interrupt::Deadline => Outcome::Interrupted(error),
            Interrupt::Cpu => Outcome::CpuLimit(error),
        }
    }

    /// Creates the outcome of a program that failed without an interrupt. `is_full` and `was_full` tell whether the
    /// program uses, or has used, most of its memory limit. A failure without a clear cause then counts as a lack of
    /// memory.
    pub(super) fn into_failed_outcome<'js>(
        self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        source_map: Option<&SourceMap>,
        is_full: bool,
        was_full: bool,
    ) -> Outcome {
        let value = match self {
            Self::Report(error) => return Outcome::Error(*error),
            Self::Stuck if is_full => return memory_limit(CodeError::default()),
            Self::Stuck => {
                let message =
                    "the program awaits something that never happens: no call and no timer is under way";
                let mut error = errors::code_error("Error", message);
                errors::add_position_with_excerpt(
                    &mut error,
                    await_position(ctx, functions, source_map),
                    source_map,
                );
                return Outcome::Error(error);
            }
            Self::Engine(Error::Allocation) => return memory_limit(CodeError::default()),
            Self::Engine(Error::InvalidString(_)) => {
                return Outcome::Error(errors::code_error(
                    "SyntaxError",
                    "the program contains a NUL character",
                ));
            }
            Self::Engine(error) => return Outcome::Error(errors::code_error("TypeError", error.to_string())),
            Self::Exception(value) => match value.restore(ctx) {
                Ok(value) => value,
                Err(error) => return Outcome::Error(errors::code_error("InternalError", error.to_string())),
            },
        };
        // Without memory for an error, QuickJS throws null. Programs can throw null too, and the memory may be free
        // again by now.
        if value.is_null() && (is_full || was_full) {
            return memory_limit(CodeError::default());
        }
        let error = errors::describe_exception(ctx, functions, &value, source_map);
        // The second text is QuickJS's message when it cannot allocate the message of an error.
        let words = ["out of memory", "Invalid error message"];
        let says = words.iter().any(|words| error.message.starts_with(words));
        if error.kind == "InternalError" && (says || (is_full && error.message.is_empty())) {
            return memory_limit(error);
        }
        Outcome::Error(error)
    }
}

/// Returns the position of the program's most recent `await`; `None` if it has not awaited anything.
fn await_position<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    source_map: Option<&SourceMap>,
) -> Option<Position> {
    let byte: Option<u32> = call_realm(ctx, functions, "awaiting")?;
    Some(source_map?.position_of_byte(byte?))
}

/// Calls one of the engine's JavaScript functions, without arguments. If the call fails, calls the function once more:
/// an interrupt may have stopped it, and since QuickJS checks for an interrupt only now and then, the second call
/// usually ends before the next check. Returns `None` if the second call fails, too.
fn call_realm<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, functions: &Object<'js>, name: &str) -> Option<V> {
    let call = || {
        let answer = functions.get::<_, Function>(name).and_then(|function| function.call(()));
        answer.inspect_err(|_| drop(ctx.catch())).ok()
    };
    call().or_else(call)
}

fn into_pair(mut texts: Vec<String>) -> (String, String) {
    let second = texts.pop().unwrap_or_default();
    (texts.pop().unwrap_or_default(), second)
}

fn memory_limit(error: CodeError) -> Outcome {
    let hint = Some("keep less at once: let the tool filter, or work through pages".to_owned());
    Outcome::MemoryLimit(CodeError {
        kind: "RangeError".to_owned(),
        message: "out of memory".to_owned(),
        hint,
        ..error
    })
}
