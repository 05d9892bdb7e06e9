//! What is known of a call before anything is decided: that it could be permitted at all, that its server has what is asked
//! for, and that the arguments fit.

use lockhouse_base::language::Language;
use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::{Call, Decision, Effect, Item};
use lockhouse_protocol::Failure;
use serde_json::{Map, Value};

use super::attempt::Attempt;
use crate::arguments;
use crate::destination::Destination;

/// A list of which nothing may be known is not asked for.
pub(super) fn lists_nothing(attempt: &Attempt<'_>) -> bool {
    let Attempt { gate, from, .. } = attempt;
    let (server, item) = (attempt.server(), attempt.item());
    let permitted = || gate.policy.now().permits_item(server, item, from.client());
    matches!(item, Item::List(_)) && !(from.scope.has(server, item) && permitted())
}

/// What no arguments could make permitted is refused before anything else is told of it.
pub(super) fn refuse_hopeless(attempt: &Attempt<'_>, destination: &Destination<'_>) -> Result<(), Failure> {
    let Attempt { gate, from, .. } = attempt;
    let (server, item) = (attempt.server(), attempt.item());
    if let Some(left_out) = gate.left_out(from, server, item) {
        gate.note_denial(attempt.subject(), Effect::Deny, &left_out.message, None);
        return Err(left_out);
    }
    let policy = gate.policy.now();
    if matches!(item, Item::List(_)) || policy.permits_item(server, item, from.client()) {
        return Ok(());
    }
    if let Item::Tool(tool) = item
        && let Some(slip) = gate.misnamed(from, server, tool, destination.known())
    {
        return Err(slip);
    }
    match policy.decide(attempt.bare_call()) {
        Decision::Deny(denial) => Err(attempt.deny(&denial)),
        Decision::Allow(_) | Decision::Ask(_) => Ok(()),
    }
}

/// The call with its arguments by name, as far as its server says what it takes.
pub(super) async fn fitting_call(
    attempt: &Attempt<'_>,
    catalogue: &Catalogue,
    arguments: &[u8],
) -> Result<Call, Failure> {
    let call = attempt.bare_call();
    match attempt.item() {
        Item::Tool(name) => {
            let unknown = || attempt.gate.unknown_tool(attempt.from, attempt.server(), name, catalogue);
            let tool = attempt.tool_in(catalogue).ok_or_else(unknown)?;
            attempt.refuse_changed(tool)?;
            let fitting = fitting_arguments(attempt, tool, arguments).await?;
            Ok(call.with_arguments(fitting).defined(tool.fingerprint.clone()))
        }
        Item::Prompt(prompt) => Ok(call.with_arguments(arguments::of_prompt(prompt, arguments)?)),
        Item::Resource(_) | Item::List(_) => Ok(call),
    }
}

async fn fitting_arguments(
    attempt: &Attempt<'_>,
    tool: &Tool,
    arguments: &[u8],
) -> Result<Map<String, Value>, Failure> {
    let Attempt { gate, from, .. } = attempt;
    let language = from.language.unwrap_or(Language::Python);
    // An AI client writes the names that it has read, and its servers judge the rest.
    let named = match from.caller.wire {
        None => arguments::named(tool, arguments, language)?,
        Some(_) => arguments::as_written(arguments)?,
    };
    let (bytes, turn) = (arguments.len(), &from.usage.turn);
    gate.schemas.fitting(attempt.server(), tool, named, bytes, turn, language).await
}
