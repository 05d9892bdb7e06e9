//! Arguments against the JSON Schema that their tool declares, before anything is decided about them.
//!
//! Schemas come from upstream servers and arguments from programs, and neither is trusted with our time: what a schema may
//! be is bounded before it is compiled, patterns run on an engine whose time is linear, nothing is ever fetched, and each
//! validation has a [`Budget`]. What needs more than a moment leaves the thread on which everything else runs.

mod compile;
mod meter;
mod metered;
mod told;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::Validator;
use lockhouse_base::language::Language;
use lockhouse_catalog::Tool;
use lockhouse_policies::printable;
use lockhouse_protocol::{Failure, ServerName};
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, Semaphore};

use super::failures::invalid;
use compile::{Unusable, compile};
use meter::{Budget, Exhausted, Meter};
use metered::{Metered, Seen};

/// How long compiling may take.
const COMPILE_PATIENCE: Duration = Duration::from_secs(2);
/// Compiled schemas that are kept.
const KEPT_MAX: usize = 256;

/// Arguments up to this size are first looked at where they are.
const SMALL_BYTES: usize = 16 * 1024;
const BRIEFLY: Budget = Budget { looks: 10_000, time: Duration::from_millis(5) };
const AT_LENGTH: Budget = Budget { looks: 5_000_000, time: Duration::from_secs(1) };
/// Words are made from errors, which cost memory where mere answers do not.
const FOR_WORDS: Budget = Budget { looks: 5_000, time: Duration::from_millis(10) };
/// When nobody waits any longer: one look at a long text cannot be interrupted.
const PATIENCE: Duration = Duration::from_secs(2);

/// A compiled schema; none, when the tool's cannot be used.
type Compiled = Option<Arc<Validator<Metered>>>;

/// Schemas that were needed, by their tools' fingerprints.
#[derive(Debug, Default)]
pub(super) struct Schemas(Mutex<HashMap<String, Arc<OnceCell<Compiled>>>>);

/// One execution's turn at what takes longer: a program cannot have more than one such check run at a time.
#[derive(Debug)]
pub(super) struct Turn(Arc<Semaphore>);

impl Default for Turn {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Schemas {
    /// Gives back arguments that fit the tool's schema. `bytes` is what they had as JSON. What is wrong is told with the tool's
    /// signature in the `language`.
    pub(super) async fn fitting(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Map<String, Value>,
        bytes: usize,
        turn: &Turn,
        language: Language,
    ) -> Result<Map<String, Value>, Failure> {
        let Some(validator) = self.compiled(server, tool, turn).await else { return Ok(arguments) };
        let arguments = Value::Object(arguments);
        let (arguments, fits) = match (bytes <= SMALL_BYTES).then(|| fits(&validator, &arguments, BRIEFLY)) {
            Some(Ok(fits)) => (arguments, Ok(fits)),
            _ => at_length(validator.clone(), arguments, turn).await?,
        };
        match fits {
            Ok(true) => match arguments {
                Value::Object(arguments) => Ok(arguments),
                _ => Ok(Map::new()),
            },
            Ok(false) => Err(invalid(words(&validator, tool, &arguments, language))),
            Err(Exhausted) => Err(too_costly(tool)),
        }
    }

    async fn compiled(&self, server: &ServerName, tool: &Tool, turn: &Turn) -> Compiled {
        let cell = {
            let mut known = self.0.lock();
            if known.len() >= KEPT_MAX && !known.contains_key(&tool.fingerprint) {
                known.clear();
            }
            known.entry(tool.fingerprint.clone()).or_default().clone()
        };
        let compile = || async {
            let definition = tool.definition().to_owned();
            let compiled = on_another_thread(turn, COMPILE_PATIENCE, move || compile(&definition)).await;
            let compiled = compiled.unwrap_or(Err(Unusable::TooSlow));
            let told = |reason: &Unusable| {
                let (name, reason) = (&tool.name, printable(&reason.to_string()));
                tracing::warn!("{server}/{name}: only names of arguments are checked: its schema {reason}");
            };
            compiled.inspect_err(told).ok().flatten().map(Arc::new)
        };
        cell.get_or_init(compile).await.clone()
    }
}

fn fits(validator: &Validator<Metered>, arguments: &Value, budget: Budget) -> Result<bool, Exhausted> {
    Meter::within(budget, |meter| validator.is_valid(Seen::new(arguments, meter)))
}

/// What is wrong, as far as that can be said at little cost.
fn words(validator: &Validator<Metered>, tool: &Tool, arguments: &Value, language: Language) -> String {
    let told = Meter::within(FOR_WORDS, |meter| {
        validator.validate(Seen::new(arguments, meter)).err().map(|error| told::told(tool, &error, language))
    });
    told.ok().flatten().unwrap_or_else(|| told::generally(tool, language))
}

async fn at_length(
    validator: Arc<Validator<Metered>>,
    arguments: Value,
    turn: &Turn,
) -> Result<(Value, Result<bool, Exhausted>), Failure> {
    let check = move || {
        let fits = fits(&validator, &arguments, AT_LENGTH);
        (arguments, fits)
    };
    let checked = on_another_thread(turn, PATIENCE, check).await;
    checked.ok_or_else(|| invalid("the arguments could not be checked in time".into()))
}

/// Nothing, when it takes longer than anyone waits. The turn is over when the work is.
pub(super) async fn on_another_thread<T: Send + 'static>(
    turn: &Turn,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let permit = turn.0.clone().acquire_owned().await.ok()?;
    let working = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    tokio::time::timeout(patience, working).await.ok()?.ok()
}

fn too_costly(tool: &Tool) -> Failure {
    invalid(format!(
        "checking these arguments against the schema of {} takes too long; send less at a time",
        tool.name
    ))
}

#[cfg(test)]
mod tests;
