//! Arguments of our own tools, as models write them.

use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_messages::{RunCode, Search};
use lockhouse_protocol::{Detail, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX};
use rmcp::model::JsonObject;
use serde_json::Value;
use thiserror::Error;

/// The arguments of `run_code`.
pub(crate) fn run_code_request(arguments: &JsonObject) -> Result<RunCode, String> {
    let known = ["language", "code", "session", "timeout_s", "servers"];
    if let Some(unknown) = arguments.keys().find(|key| !known.contains(&key.as_str())) {
        let unknown = beginning(unknown);
        return Err(format!("unknown argument {unknown:?}: run_code takes {}", known.join(", ")));
    }
    let language = match arguments.get("language").and_then(Value::as_str) {
        Some("python") => Language::Python,
        Some("typescript" | "javascript") => Language::Typescript,
        Some(other) => {
            let other = beginning(other);
            return Err(format!("unknown language {other:?}: use \"python\" or \"typescript\""));
        }
        None => return Err("language is missing: use \"python\" or \"typescript\"".into()),
    };
    let code = arguments.get("code").and_then(Value::as_str).ok_or("code is missing, or is not a string")?;
    let timeout = match arguments.get("timeout_s") {
        None | Some(Value::Null) => None,
        Some(seconds) => Some(timeout(seconds)?),
    };
    let servers = match arguments.get("servers") {
        None | Some(Value::Null) => None,
        Some(names) => {
            Some(serde_json::from_value(names.clone()).map_err(|_| "servers must be a list of names")?)
        }
    };
    let session = match arguments.get("session") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => return Err("session must be a string: the name of a session".into()),
    };
    Ok(RunCode { language, code: code.to_owned(), timeout, servers, session })
}

/// What is wrong with the arguments of `search_tools`.
#[derive(Debug, Error)]
pub(crate) enum InvalidSearch {
    #[error("query must be a string")]
    Query,
    #[error("limit must be a whole number from 1 to {SEARCH_LIMIT_MAX}")]
    Limit,
    #[error(r#"detail must be "names", "signatures" or "full""#)]
    Detail,
    #[error(r#"language must be "python" or "typescript""#)]
    Language,
}

/// The arguments of `search_tools`.
pub(crate) fn search_request(arguments: &JsonObject) -> Result<Search, InvalidSearch> {
    let query = match arguments.get("query") {
        None => String::new(),
        Some(Value::String(query)) => query.clone(),
        Some(_) => return Err(InvalidSearch::Query),
    };
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => Some(SEARCH_LIMIT_DEFAULT),
        Some(limit) => limit.as_u64().and_then(|limit| u32::try_from(limit).ok()),
    };
    let limit = limit.filter(|limit| (1..=SEARCH_LIMIT_MAX).contains(limit));
    let limit = limit.ok_or(InvalidSearch::Limit)?;
    let detail = match arguments.get("detail") {
        None | Some(Value::Null) => Some(Detail::default()),
        Some(detail) => detail.as_str().and_then(Detail::named),
    };
    let detail = detail.ok_or(InvalidSearch::Detail)?;
    let language = match arguments.get("language").map(Value::as_str) {
        None | Some(Some("python")) => Language::Python,
        Some(Some("typescript" | "javascript")) => Language::Typescript,
        Some(_) => return Err(InvalidSearch::Language),
    };
    Ok(Search { query, limit, detail, language })
}

/// As much of a name that nobody knows as an answer repeats.
pub(crate) fn beginning(name: &str) -> String {
    name.chars().take(80).collect()
}

fn timeout(seconds: &Value) -> Result<Duration, String> {
    let told = || "timeout_s must be a number of seconds above 0".to_owned();
    let seconds = seconds.as_f64().filter(|seconds| *seconds > 0.0).ok_or_else(told)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| told())
}
