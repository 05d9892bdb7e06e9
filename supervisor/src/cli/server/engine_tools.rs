//! `lockhouse server diff` and `server accept` for a server of the system's engine: the engine compares the tools and accepts them.

use std::process::ExitCode;

use lockhouse_catalog::ToolChange;
use lockhouse_config::SystemEngine;
use lockhouse_link::OperatorError;
use lockhouse_messages::{
    ChangedDefinition, DefinitionChange, DefinitionReview, OperatorRequest, OperatorResponse, Presence,
};
use lockhouse_protocol::ToolName;
use lockhouse_upstream::{ChangedTool, ToolReview};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::tool_changes::{AcceptArguments, DiffArguments, print_changes, review_to_json, stale};
use crate::cli::approvals::password::{PasswordSubject, approve_on_terminal};
use crate::cli::command_error::CommandError;
use crate::cli::control_client::{Reply, engine_id, request_one};
use crate::cli::terminal::{for_stdout, sanitize};

/// Shows the tools of a server that nobody has accepted.
pub(super) async fn diff(engine: SystemEngine, arguments: &DiffArguments) -> Result<ExitCode, ExitCode> {
    let DiffArguments { name, tools, json, .. } = arguments;
    require_all(tools).map_err(|error| error.print())?;
    let review = review(engine, name).await.map_err(|error| error.print())?;
    if *json {
        println!("{}", for_stdout(&format!("{:#}", to_json(&review))));
        return Ok(ExitCode::SUCCESS);
    }
    show(&review);
    if !is_unchanged(&review) {
        println!("To accept exactly these definitions: {}", how_to_accept(engine, &review));
    }
    Ok(ExitCode::SUCCESS)
}

/// Accepts all tools of a server: as root with the digest that was shown, or as the person with a password.
pub(super) async fn accept(engine: SystemEngine, arguments: &AcceptArguments) -> Result<ExitCode, ExitCode> {
    let AcceptArguments { name, tools, digest, .. } = arguments;
    require_all(tools).map_err(|error| error.print())?;
    try_accept(engine, name, digest.as_deref()).await.map_err(|error| error.print())
}

fn require_all(tools: &[String]) -> Result<(), CommandError> {
    let message = "the engine of the system accepts all tools of a server at one time: leave their names out";
    if tools.is_empty() { Ok(()) } else { Err(CommandError::usage(message.to_owned())) }
}

/// Returns a review as JSON, for the page and for programs.
pub(in crate::cli) fn to_json(review: &DefinitionReview) -> Value {
    let mut shown = review_to_json(&review.server, &tool_review(review));
    shown["error"] = json!(review.unreadable);
    shown["presence"] = json!(review.presence);
    shown
}

async fn try_accept(
    engine: SystemEngine,
    name: &str,
    digest: Option<&str>,
) -> Result<ExitCode, CommandError> {
    let review = review(engine, name).await?;
    if digest.is_some_and(|digest| digest != review.digest) {
        return Err(stale(&review.server));
    }
    if is_unchanged(&review) {
        show(&review);
        return Ok(ExitCode::SUCCESS);
    }
    if geteuid().is_root() {
        let digest = digest.ok_or_else(|| {
            CommandError::usage(format!("nothing was accepted: {}", how_to_accept(engine, &review)))
        })?;
        let (server, digest) = (review.server.clone(), digest.to_owned());
        let request = OperatorRequest::AcceptDefinitions { server, digest, proof: None };
        return match request_one(engine_id(engine), &request).await {
            Ok(OperatorResponse::DefinitionsAccepted(count)) => {
                println!("Accepted {count} tools of {}.", sanitize(&review.server));
                Ok(ExitCode::SUCCESS)
            }
            reply => Err(unavailable(reply)),
        };
    }
    if review.presence != Presence::Password {
        return Err(CommandError::usage(format!("nothing was accepted: {}", how_to_accept(engine, &review))));
    }
    show(&review);
    approve_on_terminal(PasswordSubject::Tools(&review)).await.map_err(CommandError::unavailable)?;
    println!("Accepted the tools of {}.", sanitize(&review.server));
    Ok(ExitCode::SUCCESS)
}

async fn review(engine: SystemEngine, name: &str) -> Result<DefinitionReview, CommandError> {
    let request = OperatorRequest::ReviewDefinitions { server: name.to_owned() };
    match request_one(engine_id(engine), &request).await {
        Ok(OperatorResponse::Definitions(review)) => Ok(*review),
        reply => Err(unavailable(reply)),
    }
}

fn unavailable(reply: Reply) -> CommandError {
    match reply {
        Ok(OperatorResponse::Refused { reason }) | Err(OperatorError::Refused(reason)) => {
            CommandError::unavailable(sanitize(&reason))
        }
        _ => CommandError::unavailable(
            "the engine of the system does not answer, or the server is still starting: try again",
        ),
    }
}

fn is_unchanged(review: &DefinitionReview) -> bool {
    review.changes.is_empty() && review.unreadable.is_none()
}

fn show(review: &DefinitionReview) {
    if let Some(error) = &review.unreadable {
        eprintln!("lockhouse: {}; all tools are shown", sanitize(error));
    }
    if is_unchanged(review) {
        println!("The tools of {} have not changed.", sanitize(&review.server));
    }
    print_changes(&tool_review(review));
}

/// Returns a review in the form that commands print.
fn tool_review(review: &DefinitionReview) -> ToolReview {
    let change = |change: &ChangedDefinition| {
        let ChangedDefinition { tool, kind, before, after } = change.clone();
        let kind = match kind {
            DefinitionChange::Changed => ToolChange::Definition,
            DefinitionChange::New => ToolChange::New,
            DefinitionChange::NotComparable => ToolChange::NotComparable,
        };
        Some(ChangedTool { tool: ToolName::new(tool).ok()?, kind, before, after })
    };
    let (removed, digest) = (review.removed.clone(), review.digest.clone());
    let changes = review.changes.iter().filter_map(change).collect();
    ToolReview { changes, removed, unreadable: None, digest }
}

/// Returns who can accept the tools, and how.
fn how_to_accept(engine: SystemEngine, review: &DefinitionReview) -> String {
    let accept = format!("lockhouse server accept {}", sanitize(&review.server));
    let (person, digest) = (engine.person(), &review.digest);
    let by_root =
        format!("an administrator accepts them with sudo {accept} --person {person} --digest {digest}");
    match review.presence {
        Presence::None => by_root,
        Presence::Password => format!("you accept them with your password, {accept}; or {by_root}"),
        Presence::Key => {
            format!("you accept them with your key on the page (`lockhouse page`, Servers); or {by_root}")
        }
    }
}
