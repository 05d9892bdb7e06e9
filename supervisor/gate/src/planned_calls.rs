//! Checks the calls that a program is going to make, before the program runs. The checks are those of a real
//! call, except those that depend on values that are known only during the run.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_catalog::{Catalogue, Tool};
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{CallId, Failure, Language, PLANNED_CALLS_MAX, PlannedCall, Reply, ServerName};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::argument_names::{self, RawArguments};
use super::code_server::CodeServer;
use super::failures::with_names;
use super::tool_discovery::ToolLookup;
use super::{Gate, RunContext};

/// Maximum time that the check of a program's planned calls waits for the called servers to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a planned call's arguments, in bytes, for them to be checked before the program runs.
/// Larger arguments are checked only when the call is made.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

impl Gate {
    /// Checks calls that a program is going to make, and returns a JSON object with two members. `findings` contains
    /// the failure of each planned call that cannot succeed. `tools` contains the description of the called tool for
    /// each checked call without a failure; the worker needs the description to create the tool's function. Waits at
    /// most [`CONNECT_TIMEOUT`] for the servers to connect, and skips calls of servers that do not connect in time.
    pub(super) async fn check_calls(
        &self,
        run: &RunContext,
        call: CallId,
        planned: Vec<PlannedCall>,
    ) -> Reply {
        let (mut findings, mut tools) = (Vec::new(), Vec::new());
        // One deadline for all servers, which connect at the same time.
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        for (number, planned) in planned.into_iter().take(PLANNED_CALLS_MAX).enumerate() {
            // Each check may take milliseconds, which must not delay other executions.
            tokio::task::yield_now().await;
            match self.check_call(run, call, planned, deadline).await {
                Ok(Some(entry)) => tools.push(json!([number, entry])),
                Ok(None) => {}
                Err(failure) => {
                    let Failure { code, message, server, tool, .. } = failure;
                    findings.push(json!({
                        "call": number, "code": code.as_str(), "message": message, "server": server, "tool": tool,
                    }));
                }
            }
        }
        Ok(json!({"findings": findings, "tools": tools}).to_string().into_bytes())
    }

    /// Returns the description of the called tool, or the failure that the call would have. Returns `None` if the
    /// server did not connect, so that its tools are not known.
    async fn check_call(
        &self,
        run: &RunContext,
        call: CallId,
        planned: PlannedCall,
        deadline: Instant,
    ) -> Result<Option<Value>, Failure> {
        let PlannedCall { server, tool, arguments, line } = planned;
        let unresolved = |failure| with_names(failure, &server, &CallTarget::from(&tool));
        let connection = self.visible_server(run, &server).map_err(unresolved)?;
        // The name may be another form of a permitted tool's name, which only the server's list tells.
        let Some(catalogue) = connected_catalogue(connection, deadline).await else { return Ok(None) };
        let resolved = self.resolve_tool_name(run, &server, &tool).unwrap_or(tool);
        let named = |failure| with_names(failure, &server, &CallTarget::from(&resolved));
        let lookup = ToolLookup { run, call, server: &server, tool: &resolved, line };
        self.refuse_withheld_tool(&lookup, connection).map_err(named)?;
        let Some(tool) = catalogue.tool(&resolved) else {
            return Err(named(self.unknown_tool_failure(run, &server, &resolved, &catalogue)));
        };
        self.refuse_unaccepted_definition(&lookup, tool).map_err(named)?;
        if let Some(arguments) = arguments.filter(|arguments| arguments.len() <= ARGUMENTS_BYTES_MAX) {
            self.check_planned_arguments(run, &server, tool, arguments).await.map_err(named)?;
        }
        let policy = self.policy.current();
        let asks = policy.may_require_approval(&server, &resolved, run.client());
        Ok(Some(tool.module_entry(&connection.describe_options(tool, asks, run.language))))
    }

    /// Checks the argument names of a planned call, and those values that the program writes as literals. In
    /// `arguments`, values that are not known before the run are `null`.
    async fn check_planned_arguments(
        &self,
        run: &RunContext,
        server: &ServerName,
        tool: &Tool,
        arguments: Vec<u8>,
    ) -> Result<(), Failure> {
        let language = run.language.unwrap_or(Language::Python);
        let raw = RawArguments { arguments: arguments.clone(), ..RawArguments::default() };
        // Limits the number of values, before they are parsed.
        let mut literals = argument_names::normalize(tool, raw, language)?.values;
        literals.retain(|_, value| !value.is_null());
        let (is_complete, slot) = (!has_unknown_values(&arguments), &run.usage.slow_check_slot);
        self.schemas.check_literals(server, tool, literals, is_complete, slot, language).await
    }
}

/// Returns the tool catalogue of a server if it is connected or connects before the deadline. Does not use the
/// cached catalogue of an earlier connection, since it may be outdated.
async fn connected_catalogue(connection: CodeServer<'_>, deadline: Instant) -> Option<Arc<Catalogue>> {
    timeout_at(deadline, connection.connected_catalogue()).await.ok()?.ok()
}

/// Whether some arguments (a JSON object or array) are `null`, which means that their values are not known before
/// the run. Also `true` for invalid JSON.
fn has_unknown_values(arguments: &[u8]) -> bool {
    match serde_json::from_slice(arguments) {
        Ok(Value::Object(named)) => named.values().any(Value::is_null),
        Ok(Value::Array(values)) => values.iter().any(Value::is_null),
        _ => true,
    }
}
