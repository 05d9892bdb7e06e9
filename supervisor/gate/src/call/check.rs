//! The checks of a call before the policy or an approver decides about it: whether the policy could permit
//! the call with any arguments, whether the server offers the called item, and whether the arguments are
//! valid.

use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::{Call, CallTarget, Decision, Effect};
use lockhouse_protocol::{Failure, Language};
use serde_json::{Map, Value};

use super::attempt::CallAttempt;
use crate::argument_names::{self, NamedArguments, RawArguments};
use crate::destination::Destination;

/// Refuses a call of an item that is outside of the execution's scope, or that the policy does not permit with any
/// arguments. This check precedes the validation of the arguments, whose errors would describe the item to the
/// caller.
pub(super) fn refuse_never_permitted(
    attempt: &CallAttempt<'_>,
    destination: &Destination,
) -> Result<(), Failure> {
    let CallAttempt { gate, run, .. } = attempt;
    let (server, item) = (attempt.server(), attempt.item());
    if let Some(left_out) = gate.out_of_scope_failure(run, server, item) {
        gate.record_denial(attempt.subject(), Effect::Deny, &left_out.message, None);
        return Err(left_out);
    }
    let policy = gate.policy.current();
    if policy.permits_target(server, item, run.client()) {
        return Ok(());
    }
    if let CallTarget::Tool(tool) = item
        && let Some(slip) = gate.misspelled_tool_failure(run, server, tool, destination.cached_catalogue())
    {
        return Err(slip);
    }
    match policy.decide(attempt.bare_call()) {
        Decision::Deny(denial) => Err(attempt.record_policy_denial(&denial)),
        Decision::Allow(_) | Decision::Ask(_) => Ok(()),
    }
}

/// Returns the call with its arguments by parameter name, validated against the definition of the called
/// tool, resource or prompt.
pub(super) async fn validated_call(
    attempt: &CallAttempt<'_>,
    catalogue: &Catalogue,
    arguments: RawArguments,
) -> Result<Call, Failure> {
    let direct = attempt.run.direct.as_ref();
    let call = attempt.bare_call().with_beside(direct.and_then(|direct| direct.sent_beside_arguments()));
    match attempt.item() {
        CallTarget::Tool(name) => {
            let unknown =
                || attempt.gate.unknown_tool_failure(attempt.run, attempt.server(), name, catalogue);
            let tool = attempt.tool_in(catalogue).ok_or_else(unknown)?;
            attempt.refuse_unaccepted_tool(tool)?;
            let fitting = validated_arguments(attempt, tool, arguments).await?;
            Ok(call.with_arguments(fitting).with_definition_digest(tool.fingerprint.clone()))
        }
        CallTarget::Prompt(prompt) => {
            Ok(call.with_arguments(argument_names::parse_prompt_arguments(prompt, &arguments.arguments)?))
        }
        CallTarget::Resource(_) | CallTarget::List(_) => Ok(call),
    }
}

/// Validates the arguments of a tool against its schema.
async fn validated_arguments(
    attempt: &CallAttempt<'_>,
    tool: &Tool,
    arguments: RawArguments,
) -> Result<Map<String, Value>, Failure> {
    let CallAttempt { gate, run, .. } = attempt;
    let language = run.language.unwrap_or(Language::Python);
    // For direct calls, the names are not changed: the AI client has read the tool's schema, and the server validates
    // the names.
    let (bytes, slot) = (arguments.arguments.len(), &run.usage.slow_check_slot);
    let named = match run.direct {
        None => argument_names::normalize(tool, arguments, language)?,
        Some(_) => {
            let values = argument_names::parse_object(&arguments.arguments)?;
            NamedArguments { values, ..NamedArguments::default() }
        }
    };
    gate.schemas.check_arguments(attempt.server(), tool, named, bytes, slot, language).await
}
