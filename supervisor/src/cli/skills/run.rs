//! `lockhouse skills run`: calls a saved skill by its name, in a program of one line.

use std::process::ExitCode;

use lockhouse_config::Files;
use lockhouse_engine::supervisor::CodeRequest;
use lockhouse_protocol::Language;
use lockhouse_stores::skills::{Origin, Skill, Skills};
use serde_json::{Map, Value};

use super::{USAGE, load_skill};
use crate::cli::run;

/// Options of `lockhouse skills run`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the skill, in snake_case or as the name of its folder
    name: String,
    /// An argument: NAME=VALUE by name, where VALUE is JSON or text, or JSON by position; may be given several times
    #[arg(long, value_name = "NAME=VALUE|JSON")]
    arg: Vec<String>,
    /// Print the answer as JSON, as an AI client receives it
    #[arg(long)]
    json: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("--arg {argument}: give NAME=VALUE, or JSON: text as JSON is in double quotes")]
struct InvalidArgument {
    argument: String,
}

/// Runs the skill like a program of `lockhouse run`, under the policy. Fails for a draft.
pub(super) async fn run(files: &Files, skills: &Skills, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let (skill, origin) = load_skill(skills, &arguments.name, None)?;
    if origin == Origin::Draft {
        eprintln!("lockhouse: {} is a draft, which cannot run; approve it first", skill.name);
        return Err(ExitCode::from(USAGE));
    }
    let (by_position, by_name) =
        parse(&arguments.arg).map_err(|error| super::print_error(&error, super::USAGE))?;
    let request = CodeRequest::new(skill.language, program(&skill, by_position, by_name));
    Ok(run::run_program(files, request, arguments.json, &run::FileOptions::default()).await)
}

/// Parses the values of `--arg` into positional arguments (JSON) and named arguments (`NAME=VALUE`).
fn parse(arguments: &[String]) -> Result<(Vec<Value>, Map<String, Value>), InvalidArgument> {
    let (mut by_position, mut by_name) = (Vec::new(), Map::new());
    for argument in arguments {
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c));
        if let Some((name, value)) = argument.split_once('=').filter(|(name, _)| is_name(name)) {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            by_name.insert(name.to_owned(), value);
        } else {
            let value = serde_json::from_str(argument);
            by_position.push(value.map_err(|_| InvalidArgument { argument: argument.clone() })?);
        }
    }
    Ok((by_position, by_name))
}

/// Creates the program that calls the skill. In TypeScript, the arguments that are given by name are passed as one
/// object, which is the last argument.
fn program(skill: &Skill, mut by_position: Vec<Value>, by_name: Map<String, Value>) -> String {
    let name = Value::from(skill.name.as_str());
    // A JSON string is a string literal in both languages, too.
    let literal = |value: &Value| Value::from(value.to_string()).to_string();
    match skill.language {
        Language::Python => format!(
            "import json, skills\nskills.run({name}, *json.loads({}), **json.loads({}))",
            literal(&by_position.into()),
            literal(&by_name.into())
        ),
        Language::Typescript => {
            if !by_name.is_empty() {
                by_position.push(by_name.into());
            }
            format!(
                "import skills from \"skills\";\nawait skills.run({name}, ...JSON.parse({}))",
                literal(&by_position.into())
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn arguments_are_json_or_text() {
        let parsed = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            parse(&arguments).map(|(by_position, by_name)| {
                format!("{} {}", serde_json::Value::from(by_position), serde_json::Value::from(by_name))
            })
        };
        let given = ["days=7", "owner=acme", "[1]", "\"a=b\"", "empty=", "id=\"7\"", "q=a=b"];
        let expected = r#"[[1],"a=b"] {"days":7,"owner":"acme","empty":"","id":"7","q":"a=b"}"#;
        assert_eq!(parsed(&given).unwrap(), expected);
        assert_eq!(parsed(&[]).unwrap(), "[] {}");
        for wrong in ["acme", "=7", "{a}", ""] {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }
}
