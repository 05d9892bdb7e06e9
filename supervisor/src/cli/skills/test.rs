//! `lockhouse skills test`: the tests that were saved with skills, each run as a program like any other.

use std::process::ExitCode;

use lockhouse_base::language::Language;
use lockhouse_engine::execution::{Answer, Status};
use lockhouse_engine::supervisor::{CodeRequest, Supervisor};
use lockhouse_gate::skills::{Origin, Skill, Skills};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::found;
use crate::cli::terminal::for_stdout;
use crate::cli::{start, table};
use crate::config::Files;

/// Which.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Only these [default: all that code can import]
    name: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What came of one skill's tests.
enum Outcome {
    Passed,
    Failed(String),
    /// There are none.
    None,
}

impl Outcome {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed(_) => "FAIL",
            Self::None => "no tests",
        }
    }
}

/// Runs them one after the other. They may do what the policy permits any program.
pub(super) async fn test(
    files: &Files,
    skills: &Skills,
    arguments: &Arguments,
) -> Result<ExitCode, ExitCode> {
    let chosen = if arguments.name.is_empty() {
        skills.usable()
    } else {
        let mut chosen = Vec::new();
        for name in &arguments.name {
            let (skill, origin) = found(skills, name, None)?;
            if origin == Origin::Draft {
                eprintln!("lockhouse: {} is a draft, which no test can import; approve it first", skill.name);
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
        let supervisor = start(files, &languages)?;
        for skill in &chosen {
            outcomes.push(run(&supervisor, skill).await);
        }
        supervisor.close().await;
    } else {
        outcomes.extend(chosen.iter().map(|_| Outcome::None));
    }
    tell(&chosen, &outcomes, arguments.json);
    let failed = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
    Ok(ExitCode::from(u8::from(failed)))
}

async fn run(supervisor: &Supervisor, skill: &Skill) -> Outcome {
    let Some(tests) = &skill.tests else { return Outcome::None };
    let request = CodeRequest {
        language: skill.language,
        code: tests.clone(),
        timeout: None,
        servers: None,
        session: None,
    };
    let answer = supervisor.run_code(request, &CancellationToken::new()).await;
    match answer.status {
        Status::Ok => Outcome::Passed,
        _ => Outcome::Failed(why(&answer)),
    }
}

/// The first line of what went wrong.
fn why(answer: &Answer) -> String {
    let status = answer.status.as_str();
    let json = answer.to_json();
    let Some(error) = json.get("error") else { return status.to_owned() };
    let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let line =
        error.get("line").and_then(Value::as_u64).map(|line| format!(" (line {line})")).unwrap_or_default();
    let message = part("message").lines().next().unwrap_or_default();
    format!("{}{line}: {message}", part("type"))
}

fn tell(skills: &[Skill], outcomes: &[Outcome], as_json: bool) {
    let told = |outcome: &Outcome| match outcome {
        Outcome::Failed(why) => why.clone(),
        Outcome::Passed | Outcome::None => String::new(),
    };
    let all = skills.iter().zip(outcomes);
    if as_json {
        let row = |(skill, outcome): (&Skill, &Outcome)| {
            json!({
                "name": skill.name.as_str(), "version": skill.version, "outcome": outcome.as_str(), "error": told(outcome),
            })
        };
        let rows: Value = all.map(row).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
        return;
    }
    let row = |(skill, outcome): (&Skill, &Outcome)| {
        vec![skill.name.to_string(), skill.version.to_string(), outcome.as_str().to_owned(), told(outcome)]
    };
    let rows: Vec<Vec<String>> = all.map(row).collect();
    println!("{}", table::render(&["name", "version", "tests", "what went wrong"], &rows));
}
