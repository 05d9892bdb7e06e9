//! Asks the supervisor to check the tool calls that a program will certainly make, before any of them is
//! sent.

use lockhouse_protocol::{CodeError, PLANNED_CALLS_MAX, PlannedCall, ServerName, ToolName, WorkerRequest};
use lockhouse_worker::signals;
use lockhouse_worker::tool_host::ToolHost;
use rquickjs::{Ctx, Function, Object};
use serde::Deserialize;
use serde_json::Value;

use super::errors;
use super::planned_calls::PlannedToolCall;
use super::program_failure::ProgramFailure;
use super::traceback;

/// Maximum number of findings whose messages one error contains.
const SHOWN_MAX: usize = 5;
/// Last line of the traceback of an error that the check found. The line says that the program has not run.
const NOT_RUN: &str = "  found before the run: no call was sent";

/// The supervisor's reply to [`WorkerRequest::CheckCalls`].
#[derive(Deserialize)]
struct CheckReply {
    findings: Vec<Finding>,
    /// Definitions of the called tools, each with the index of its call in the request.
    tools: Vec<(usize, Value)>,
}

/// The reason why a planned call cannot succeed, found by the supervisor.
#[derive(Deserialize)]
struct Finding {
    /// The index of the call in the request.
    call: usize,
    code: String,
    message: String,
}

/// Asks the supervisor to check the planned calls. Keeps the tool definitions from the reply, so that the program need
/// not request them. Fails with one error for all calls that cannot succeed. If the check itself fails, the program
/// runs unchecked.
pub(super) fn check<'js>(
    ctx: &Ctx<'js>,
    functions: &Object<'js>,
    host: &'static dyn ToolHost,
    source: &str,
    planned: Vec<PlannedToolCall>,
) -> Result<(), ProgramFailure> {
    let mut calls = Vec::new();
    let server_of: Function =
        if planned.is_empty() { return Ok(()) } else { functions.get("serverOfName")? };
    for call in planned.into_iter().take(PLANNED_CALLS_MAX) {
        // A variable of the session, or a property of the program's global object, may have the name of a server.
        let server: Option<String> = server_of.call((call.server.as_str(), call.tool.as_str()))?;
        let names =
            server.and_then(|name| Some((ServerName::new(name).ok()?, ToolName::new(&call.tool).ok()?)));
        let Some((server, tool)) = names else { continue };
        let arguments = call.arguments.as_ref().map(|arguments| arguments.to_string().into_bytes());
        let line = Some(call.position.line);
        calls.push((call, PlannedCall { server, tool, arguments, line }));
    }
    if calls.is_empty() {
        return Ok(());
    }
    let request =
        WorkerRequest::CheckCalls { calls: calls.iter().map(|(_, planned)| planned.clone()).collect() };
    let reply = host.ask(request, &mut || signals::pending().is_some()).ok_or(ProgramFailure::Stuck)?;
    // If the check itself fails, the run reports what is wrong.
    let Ok(json) = reply else { return Ok(()) };
    let Ok(CheckReply { findings, tools }) = serde_json::from_slice(&json) else { return Ok(()) };
    let remember: Function = functions.get("rememberTool")?;
    for (number, entry) in tools {
        let Some((_, planned)) = calls.get(number) else { continue };
        let entry = ctx.json_parse(entry.to_string())?;
        remember.call::<_, ()>((planned.server.as_str(), planned.tool.as_str(), entry))?;
    }
    match report(source, &calls, findings) {
        Some(error) => Err(ProgramFailure::Report(Box::new(error))),
        None => Ok(()),
    }
}

/// Returns one error with the messages of the first [`SHOWN_MAX`] findings, at the position of the first one. Returns
/// `None` if there is no finding.
fn report(
    source: &str,
    calls: &[(PlannedToolCall, PlannedCall)],
    findings: Vec<Finding>,
) -> Option<CodeError> {
    let count = findings.len();
    let mut found = findings.into_iter().filter_map(|finding| Some((&calls.get(finding.call)?.0, finding)));
    let (call, first) = found.next()?;
    let mut message = first.message;
    let others = found.take(SHOWN_MAX - 1).map(|(call, finding)| {
        format!("line {}, column {}: {}", call.position.line, call.position.column, finding.message)
    });
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        message = format!("{message}\nAlso:\n{}", others.join("\n"));
    }
    if count > SHOWN_MAX {
        message = format!("{message}\nand {} more", count - SHOWN_MAX);
    }
    let mut error = errors::code_error("ToolError", message);
    error.code = Some(first.code);
    error.traceback = Some(format!("{}\n{NOT_RUN}", traceback::position_with_excerpt(call.position, source)));
    errors::add_position(&mut error, Some(call.position));
    Some(error)
}
