//! Validates the arguments of calls against the JSON Schemas of their tools, before the policy decides.
//!
//! Schemas come from upstream servers and arguments from programs; neither may use much CPU time. The size of schemas
//! is limited before they are compiled, patterns run on a regular-expression engine with linear time, references to
//! other documents are not fetched, and each validation has a [`Budget`]. Long validations run on a blocking thread.

mod budgeted_json;
mod compile;
mod error_message;
mod other_forms;
mod validation_budget;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use lockhouse_catalog::Tool;
use lockhouse_policies::printable;
use lockhouse_protocol::{Failure, Language, ServerName};
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, Semaphore};

use super::argument_names::NamedArguments;
use super::failures::invalid_arguments;
use budgeted_json::{BudgetedJson, BudgetedValue};
use compile::{SchemaError, compile};
use validation_budget::{Budget, BudgetExceeded, ValidationMeter};

/// Maximum time for compiling a schema.
/// Bound: calls and arguments.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of compiled schemas in the cache. When it is reached, the cache is emptied.
/// Bound: calls and arguments.
const SCHEMAS_MAX: usize = 256;

/// Maximum length, in bytes, of arguments that are first validated on the current thread, with a small budget.
/// Longer arguments are validated only on a blocking thread.
/// Bound: calls and arguments.
const SMALL_BYTES: usize = 16 * 1024;
/// Budget of a validation on the current thread.
const INLINE_BUDGET: Budget = Budget { reads: 10_000, time: Duration::from_millis(5) };
/// Budget of a validation on a blocking thread.
const BACKGROUND_BUDGET: Budget = Budget { reads: 5_000_000, time: Duration::from_secs(1) };
/// Budget for finding the validation error that an error message describes. It is small, because finding errors
/// needs more memory than only deciding whether the arguments are valid.
const MESSAGE_BUDGET: Budget = Budget { reads: 5_000, time: Duration::from_millis(10) };
/// Maximum time of a validation on a blocking thread. The time limit of [`BACKGROUND_BUDGET`] does not suffice,
/// because it cannot interrupt the matching of a pattern with a long text.
/// Bound: calls and arguments.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// The compiled schema of a tool; `None` if the tool has no schema or its schema cannot be used.
type Compiled = Option<Arc<Validator<BudgetedJson>>>;

/// A cache of the compiled schemas of tools. The key is the fingerprint (hash) of the tool's definition.
#[derive(Debug, Default)]
pub(super) struct SchemaCache(Mutex<HashMap<String, Arc<OnceCell<Compiled>>>>);

/// A lock that lets only one slow task of an execution run on a blocking thread at one time.
#[derive(Debug)]
pub(super) struct BlockingSlot(Arc<Semaphore>);

impl Default for BlockingSlot {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl SchemaCache {
    /// Validates arguments against the schema of their tool, and returns them. An argument that the schema permits only
    /// in another form is replaced by that form ([`other_forms`]). `bytes` is the length of the arguments as JSON. `language` is the language in which errors quote the
    /// tool's signature.
    pub(super) async fn check_arguments(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: NamedArguments,
        bytes: usize,
        slot: &BlockingSlot,
        language: Language,
    ) -> Result<Map<String, Value>, Failure> {
        let NamedArguments { values, decoded } = arguments;
        let Some(validator) = self.validator(server, tool, slot).await else { return Ok(values) };
        let arguments = Value::Object(values);
        let (arguments, fits) =
            match (bytes <= SMALL_BYTES).then(|| is_valid(&validator, &arguments, INLINE_BUDGET)) {
                Some(Ok(fits)) => (arguments, Ok(fits)),
                _ => check_in_background(validator.clone(), arguments, slot).await?,
            };
        match fits {
            Ok(true) if other_forms::has_large_float(&arguments) => {
                let work = move || (other_forms::rounded_integer(&validator, &arguments), arguments);
                match run_blocking(slot, CHECK_TIMEOUT, work).await {
                    Some((None, arguments)) => Ok(into_members(arguments)),
                    Some((Some((place, float)), _)) => {
                        Err(invalid_arguments(error_message::rounded(tool, &place, float)))
                    }
                    None => Err(too_costly(tool)),
                }
            }
            Ok(true) => Ok(into_members(arguments)),
            Ok(false) => {
                let message = failure_message(&validator, tool, &arguments, language);
                let work = move || other_forms::with_other_forms(&validator, arguments, decoded);
                match run_blocking(slot, CHECK_TIMEOUT, work).await.flatten() {
                    Some(Ok(arguments)) => Ok(into_members(arguments)),
                    Some(Err(changed)) => Err(invalid_arguments(changed.message(tool, language))),
                    None => Err(invalid_arguments(message)),
                }
            }
            Err(BudgetExceeded) => Err(too_costly(tool)),
        }
    }

    /// Checks the literal arguments of a planned call. The values of its other arguments are not known before the
    /// run. `is_complete` tells whether all arguments are literals. If not, each literal is checked separately, and
    /// only if the schema has no rule that combines several parameters.
    pub(super) async fn check_literals(
        &self,
        server: &ServerName,
        tool: &Tool,
        literals: Map<String, Value>,
        is_complete: bool,
        slot: &BlockingSlot,
        language: Language,
    ) -> Result<(), Failure> {
        if literals.is_empty() || !is_complete && combines_parameters(tool) {
            return Ok(());
        }
        let Some(validator) = self.validator(server, tool, slot).await else { return Ok(()) };
        let literals = Value::Object(literals);
        // The call itself decides in which form a large integer is sent.
        if other_forms::has_large_integer(&literals) {
            return Ok(());
        }
        let message = match is_complete {
            true => match is_valid(&validator, &literals, INLINE_BUDGET) {
                Ok(false) => Some(failure_message(&validator, tool, &literals, language)),
                // The call reports what takes too long.
                _ => None,
            },
            false => ValidationMeter::run(MESSAGE_BUDGET, |meter| {
                let mut errors = validator.iter_errors(BudgetedValue::new(&literals, meter));
                let of_value = errors.find(|error| !error.instance_path().as_str().is_empty());
                of_value.map(|error| error_message::describe_error(tool, &error, language))
            })
            .unwrap_or_default(),
        };
        message.map_or(Ok(()), |message| Err(invalid_arguments(message)))
    }

    /// Returns the compiled schema of a tool, from the cache if possible.
    async fn validator(&self, server: &ServerName, tool: &Tool, slot: &BlockingSlot) -> Compiled {
        let cell = {
            let mut known = self.0.lock();
            if known.len() >= SCHEMAS_MAX && !known.contains_key(&tool.fingerprint) {
                known.clear();
            }
            known.entry(tool.fingerprint.clone()).or_default().clone()
        };
        let compile = || async {
            let definition = tool.definition().to_owned();
            let compiled = run_blocking(slot, COMPILE_TIMEOUT, move || compile(&definition)).await;
            let compiled = compiled.unwrap_or(Err(SchemaError::TooSlow));
            let log_unusable = |reason: &SchemaError| {
                let (name, reason) = (&tool.name, printable(&reason.to_string()));
                tracing::warn!("{server}/{name}: only names of arguments are checked: its schema {reason}");
            };
            compiled.inspect_err(log_unusable).ok().flatten().map(Arc::new)
        };
        cell.get_or_init(compile).await.clone()
    }
}

/// Keywords at the top level of a JSON Schema that make the rules for one property depend on other
/// properties.
const COMBINING_KEYWORDS: [&str; 11] = [
    "$ref",
    "allOf",
    "anyOf",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "not",
    "oneOf",
    "then",
    "else",
];

/// Whether the schema of a tool has rules for one parameter that may depend on other parameters.
fn combines_parameters(tool: &Tool) -> bool {
    let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
    COMBINING_KEYWORDS.iter().any(|keyword| definition["inputSchema"].get(keyword).is_some())
}

fn into_members(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn is_valid(
    validator: &Validator<BudgetedJson>,
    arguments: &Value,
    budget: Budget,
) -> Result<bool, BudgetExceeded> {
    ValidationMeter::run(budget, |meter| validator.is_valid(BudgetedValue::new(arguments, meter)))
}

/// Returns the error message for arguments that do not match the schema of their tool. The message describes
/// the first error, unless finding the error exceeds the budget.
fn failure_message(
    validator: &Validator<BudgetedJson>,
    tool: &Tool,
    arguments: &Value,
    language: Language,
) -> String {
    let message = ValidationMeter::run(MESSAGE_BUDGET, |meter| {
        validator
            .validate(BudgetedValue::new(arguments, meter))
            .err()
            .map(|error| error_message::describe_error(tool, &error, language))
    });
    message.ok().flatten().unwrap_or_else(|| error_message::describe_mismatch(tool, language))
}

/// Validates arguments on a blocking thread. Returns the arguments, and whether they are valid. Fails if the
/// validation does not end within [`CHECK_TIMEOUT`].
async fn check_in_background(
    validator: Arc<Validator<BudgetedJson>>,
    arguments: Value,
    slot: &BlockingSlot,
) -> Result<(Value, Result<bool, BudgetExceeded>), Failure> {
    let check = move || {
        let fits = is_valid(&validator, &arguments, BACKGROUND_BUDGET);
        (arguments, fits)
    };
    let checked = run_blocking(slot, CHECK_TIMEOUT, check).await;
    checked.ok_or_else(|| invalid_arguments("the arguments could not be checked in time".into()))
}

/// Waits until the slot is free, then runs `work` on a blocking thread. Returns `None` if the work takes longer
/// than `patience` or panics. After a timeout, the work continues, and the slot stays occupied until it ends.
pub(super) async fn run_blocking<T: Send + 'static>(
    slot: &BlockingSlot,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = slot.0.clone().acquire_owned().await.ok()?;
    let working = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    tokio::time::timeout(patience, working).await.ok()?.ok()
}

fn too_costly(tool: &Tool) -> Failure {
    invalid_arguments(format!(
        "checking these arguments against the schema of {} takes too long; send less at a time",
        tool.name
    ))
}

#[cfg(test)]
mod tests;
