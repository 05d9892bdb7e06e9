//! `lockhouse setup --undo`: takes the recorded changes back, the newest first.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_config::{ConfigError, Files};
use lockhouse_setup::{Change, Step, StepResult, Undo};

use crate::cli::command_audit_log::{ChangeError, CommandAuditLog};
use crate::cli::confirmation::Confirmation;
use crate::cli::terminal::{sanitize, sanitize_lines};
use crate::cli::{UNAVAILABLE, print_error};

pub(super) fn undo(files: &Files, confirmation: Confirmation) -> Result<ExitCode, ConfigError> {
    let Some(undo) = Undo::open()? else {
        println!("there is nothing to take back");
        return Ok(ExitCode::SUCCESS);
    };
    for step in undo.steps() {
        println!("{}: {}", shown(&step.path), describe(step));
    }
    if !confirmation.confirm("Take these changes back?") {
        return Ok(confirmation.unconfirmed());
    }
    let log = match CommandAuditLog::open(files) {
        Ok(log) => log,
        Err(error) => return Ok(print_error(&ChangeError::<ConfigError>::Unrecorded(error), UNAVAILABLE)),
    };
    let is_complete = undo.run(log.audit(), &mut show_result)?;
    println!("restart the AI clients");
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::from(UNAVAILABLE) })
}

fn show_result(step: &Step, result: &StepResult, backup: Option<PathBuf>) {
    let path = shown(&step.path);
    let note = backup.map(|backup| format!("; its content before setup is in {}", shown(&backup)));
    let note = note.unwrap_or_default();
    match result {
        StepResult::Done(outcome) => {
            println!("{path}: {}", outcome.done);
            for words in &outcome.left {
                println!("  left: {}{note}", sanitize(words));
            }
        }
        StepResult::Left => println!("{path}: left, since another change could not be taken back"),
        StepResult::Failed(error) => {
            eprintln!("lockhouse: {path}: {}", sanitize_lines(&error.to_string()));
            println!("  left as it is{note}");
        }
    }
}

fn shown(path: &Path) -> String {
    sanitize(&path.display().to_string())
}

fn describe(step: &Step) -> String {
    match &step.change {
        Change::Client { client, moved, .. } if moved.is_empty() => {
            format!("the entry for Lockhouse in {}", client.name())
        }
        Change::Client { client, moved, .. } => {
            let names: Vec<&str> = moved.iter().map(|place| place.name.as_str()).collect();
            format!("{} gets back {}", client.name(), sanitize(&names.join(", ")))
        }
        Change::Configuration { servers, .. } => format!("without {}", sanitize(&servers.join(", "))),
        Change::Policy => "the first policy".into(),
    }
}
