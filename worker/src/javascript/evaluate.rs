//! Evaluates source text in a QuickJS context.

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, FromJs, Result};

/// Evaluates source text in sloppy mode. `name` is the file name in stack traces.
///
/// # Errors
/// The exception that the code throws.
pub(super) fn evaluate_sloppy<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, name: String, source: &str) -> Result<V> {
    let mut options = EvalOptions::default();
    (options.filename, options.strict) = (Some(name), false);
    ctx.eval_with_options(source, options)
}

/// Evaluates source text in strict mode. `name` is the file name in stack traces.
///
/// # Errors
/// The exception that the code throws.
pub(super) fn evaluate<'js, V: FromJs<'js>>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<V> {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(source, options)
}
