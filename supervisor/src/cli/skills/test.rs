//! `lockhouse skills test`: runs the tests that were saved with skills, each as an ordinary program.

use std::process::ExitCode;

use lockhouse_config::{Configuration, Files};
use lockhouse_engine::execution::{ExecutionAnswer, RunStatus};
use lockhouse_engine::supervisor::{CodeRequest, Supervisor};
use lockhouse_protocol::Language;
use lockhouse_stores::skills::{Origin, Skill, Skills};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::load_skill;
use crate::cli::audit_forwarding::AuditForwarding;
use crate::cli::terminal::for_stdout;
use crate::cli::{load, start_with, table};

/// Options of `lockhouse skills test`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Only the tests of these skills [default: all skills that code can import]
    name: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The result of running the tests of one skill.
enum Outcome {
    Passed,
    Failed(String),
    /// The skill has no tests.
    NoTests,
}

impl Outcome {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed(_) => "FAIL",
            Self::NoTests => "no tests",
        }
    }
}

/// Runs the tests of the skills one after the other. The policy applies to the tests as to any other code.
pub(super) async fn test(
    files: &Files,
    skills: &Skills,
    arguments: &Arguments,
) -> Result<ExitCode, ExitCode> {
    let chosen = if arguments.name.is_empty() {
        skills.importable()
    } else {
        let mut chosen = Vec::new();
        for name in &arguments.name {
            let (skill, origin) = load_skill(skills, name, None)?;
            if origin == Origin::Draft {
                eprintln!(
                    "lockhouse: {} is a draft, which tests cannot import; approve it first",
                    skill.name
                );
                return Err(ExitCode::from(super::USAGE));
            }
            chosen.push(skill);
        }
        chosen
    };
    let uses = |language| chosen.iter().any(|skill| skill.language == language && skill.tests.is_some());
    let languages: Vec<Language> =
        [Language::Python, Language::Typescript].into_iter().filter(|language| uses(*language)).collect();
    let mut outcomes = Vec::new();
    if !languages.is_empty() {
        let Configuration { settings, policy, .. } = load(files)?;
        let supervisor = start_with(settings.engine.clone(), policy, &languages)?;
        let forwarding = AuditForwarding::start(&settings, &supervisor)?;
        for skill in &chosen {
            outcomes.push(run(&supervisor, skill).await);
        }
        supervisor.close().await;
        forwarding.close().await;
    } else {
        outcomes.extend(chosen.iter().map(|_| Outcome::NoTests));
    }
    print_outcomes(&chosen, &outcomes, arguments.json);
    let failed = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
    Ok(ExitCode::from(u8::from(failed)))
}

async fn run(supervisor: &Supervisor, skill: &Skill) -> Outcome {
    let Some(tests) = &skill.tests else { return Outcome::NoTests };
    let request = CodeRequest::new(skill.language, tests.clone());
    let answer = supervisor.run_code(request, &CancellationToken::new()).await;
    match answer.status {
        RunStatus::Ok => Outcome::Passed,
        _ => Outcome::Failed(failure_line(&answer)),
    }
}

/// Returns the type and the line of the error in the answer, and the first line of its message. If there is no error,
/// returns the answer's status.
fn failure_line(answer: &ExecutionAnswer) -> String {
    let status = answer.status.as_str();
    let Some(error) = &answer.error else { return status.to_owned() };
    let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let message = error.message.lines().next().unwrap_or_default();
    format!("{}{line}: {message}", error.kind)
}

fn print_outcomes(skills: &[Skill], outcomes: &[Outcome], as_json: bool) {
    let error_text = |outcome: &Outcome| match outcome {
        Outcome::Failed(why) => why.clone(),
        Outcome::Passed | Outcome::NoTests => String::new(),
    };
    let all = skills.iter().zip(outcomes);
    if as_json {
        let row = |(skill, outcome): (&Skill, &Outcome)| {
            json!({
                "name": skill.name.as_str(), "version": skill.version, "outcome": outcome.as_str(), "error": error_text(outcome),
            })
        };
        let rows: Value = all.map(row).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
        return;
    }
    let row = |(skill, outcome): (&Skill, &Outcome)| {
        vec![
            skill.name.to_string(),
            skill.version.to_string(),
            outcome.as_str().to_owned(),
            error_text(outcome),
        ]
    };
    let rows: Vec<Vec<String>> = all.map(row).collect();
    println!("{}", table::render(&["name", "version", "tests", "error"], &rows));
}
