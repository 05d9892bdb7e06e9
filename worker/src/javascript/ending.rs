//! How programs end that give no value.

use lockhouse_protocol::{CodeError, Outcome};
use lockhouse_worker::signals::Interrupt;
use rquickjs::{Ctx, Error, FromJs, Function, Object, Persistent, Value};

use super::errors;
use super::positions::{Place, Positions};

/// Why a program ended without a value.
pub(super) enum End {
    /// A native function failed, or there is an exception.
    Failed(Error),
    /// It threw this.
    Thrown(Persistent<Value<'static>>),
    /// It waits for nothing that could happen.
    Stuck,
    /// The engine's own finding.
    Found(Box<CodeError>),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl End {
    /// Takes the exception out of the context.
    pub(super) fn caught(self, ctx: &Ctx<'_>) -> Self {
        match self {
            Self::Failed(Error::Exception) => Self::Thrown(Persistent::save(ctx, ctx.catch())),
            other => other,
        }
    }

    /// The outcome of a program that was stopped.
    pub(super) fn interrupted<'js>(
        self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        positions: Option<&Positions>,
        interrupt: Interrupt,
    ) -> Outcome {
        let thrown = match self {
            Self::Thrown(value) => {
                value.restore(ctx).map(|value| errors::thrown(ctx, functions, &value, positions))
            }
            _ => Ok(CodeError::default()),
        };
        let thrown = thrown.unwrap_or_default();
        let (kind, mut message) = match interrupt {
            Interrupt::Deadline => ("Timeout", "the program was stopped at its deadline".to_owned()),
            Interrupt::Cpu => ("CpuLimit", "the program used up its CPU time".to_owned()),
        };
        let mut error = errors::plain(kind, "");
        if thrown.line.is_some() {
            (error.line, error.column, error.traceback) = (thrown.line, thrown.column, thrown.traceback);
        } else if let Some((subject, stack)) = ask(ctx, functions, "waiting").map(two)
            && !subject.is_empty()
        {
            message = format!("{message} while it waited for {subject}");
            errors::locate(&mut error, &stack, positions, "");
        } else {
            errors::mark(&mut error, awaiting(ctx, functions, positions), positions);
        }
        error.message = message;
        match interrupt {
            Interrupt::Deadline => Outcome::Interrupted(error),
            Interrupt::Cpu => Outcome::CpuLimit(error),
        }
    }

    /// The outcome of a program that failed by itself.
    pub(super) fn failed<'js>(
        self,
        ctx: &Ctx<'js>,
        functions: &Object<'js>,
        positions: Option<&Positions>,
        is_full: bool,
        was_full: bool,
    ) -> Outcome {
        let value = match self {
            Self::Found(error) => return Outcome::Error(*error),
            Self::Stuck if is_full => return memory_limit(CodeError::default()),
            Self::Stuck => {
                let message =
                    "the program awaits something that never happens: no call and no timer is under way";
                let mut error = errors::plain("Error", message);
                errors::mark(&mut error, awaiting(ctx, functions, positions), positions);
                return Outcome::Error(error);
            }
            Self::Failed(Error::Allocation) => return memory_limit(CodeError::default()),
            Self::Failed(Error::InvalidString(_)) => {
                return Outcome::Error(errors::plain("SyntaxError", "the program holds a NUL character"));
            }
            Self::Failed(error) => return Outcome::Error(errors::plain("TypeError", error.to_string())),
            Self::Thrown(value) => match value.restore(ctx) {
                Ok(value) => value,
                Err(error) => return Outcome::Error(errors::plain("InternalError", error.to_string())),
            },
        };
        // QuickJS throws null when it has no memory left for an error. Programs throw null too, and what filled the memory
        // may be gone by now.
        if value.is_null() && (is_full || was_full) {
            return memory_limit(CodeError::default());
        }
        let error = errors::thrown(ctx, functions, &value, positions);
        // The second is what it says without memory for the words of an error, which may also leave none.
        let words = ["out of memory", "Invalid error message"];
        let says = words.iter().any(|words| error.message.starts_with(words));
        if error.kind == "InternalError" && (says || (is_full && error.message.is_empty())) {
            return memory_limit(error);
        }
        Outcome::Error(error)
    }
}

/// Where the latest `await` of a program starts, if it had any.
fn awaiting<'js>(ctx: &Ctx<'js>, functions: &Object<'js>, positions: Option<&Positions>) -> Option<Place> {
    let byte: Option<u32> = ask(ctx, functions, "awaiting")?;
    Some(positions?.of_byte(byte?))
}

/// Calls one of the realm's functions. When it is interrupted itself, it is called again: then it has long until the
/// engine next looks for signals.
fn ask<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, functions: &Object<'js>, name: &str) -> Option<V> {
    let call = || {
        let answer = functions.get::<_, Function>(name).and_then(|function| function.call(()));
        answer.inspect_err(|_| drop(ctx.catch())).ok()
    };
    call().or_else(call)
}

fn two(mut texts: Vec<String>) -> (String, String) {
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
