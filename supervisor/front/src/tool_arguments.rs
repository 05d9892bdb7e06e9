//! Parses the arguments of Lockhouse's own tools.

use std::time::Duration;

use lockhouse_messages::{RequestClaims, RunCode, SearchRequest};
use lockhouse_protocol::{
    InvalidName, Language, ResultHandle, SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX, SearchDetail,
};
use rmcp::model::JsonObject;
use serde_json::Value;
use thiserror::Error;

/// Maximum time that `get_result` waits for a run. Larger values of its argument `wait_s` are reduced to
/// this time. It is below 300 s, after which some AI clients cancel a request.
/// Bound: AI clients.
const WAIT_MAX: Duration = Duration::from_secs(240);
const RUN_CODE_ARGUMENTS: [&str; 5] = ["language", "code", "session", "timeout_s", "servers"];
/// Other names of the argument `servers`, which similar products use. The schema of `run_code` does not list them.
const OTHER_NAMES_OF_SERVERS: [&str; 2] = ["requiredTools", "required_tools"];

/// Why the arguments of `run_code` are invalid.
#[derive(Debug, Error)]
pub(crate) enum InvalidRunCode {
    #[error("unknown argument {0:?}: run_code takes {known}", known = RUN_CODE_ARGUMENTS.join(", "))]
    Unknown(String),
    #[error(r#"unknown language {0:?}: use "python" or "typescript""#)]
    UnknownLanguage(String),
    #[error(r#"language is missing: use "python" or "typescript""#)]
    NoLanguage,
    #[error("code is missing, or is not a string")]
    Code,
    #[error("timeout_s must be a number of seconds above 0")]
    Timeout,
    #[error("servers must be a list of names")]
    Servers,
    #[error("{0} and {1} are names of one argument: give one of them")]
    SeveralServers(&'static str, &'static str),
    #[error("session must be a string: the name of a session")]
    Session,
}

/// Parses the arguments of `run_code`.
pub(crate) fn run_code_request(arguments: &JsonObject) -> Result<RunCode, InvalidRunCode> {
    let is_known = |key: &str| RUN_CODE_ARGUMENTS.contains(&key) || OTHER_NAMES_OF_SERVERS.contains(&key);
    if let Some(unknown) = arguments.keys().find(|key| !is_known(key)) {
        return Err(InvalidRunCode::Unknown(truncate_name(unknown)));
    }
    let language = match arguments.get("language").and_then(Value::as_str) {
        Some("python") => Language::Python,
        Some("typescript" | "javascript") => Language::Typescript,
        Some(other) => return Err(InvalidRunCode::UnknownLanguage(truncate_name(other))),
        None => return Err(InvalidRunCode::NoLanguage),
    };
    let code = arguments.get("code").and_then(Value::as_str).ok_or(InvalidRunCode::Code)?;
    let timeout = match arguments.get("timeout_s") {
        None | Some(Value::Null) => None,
        Some(seconds) => Some(parse_timeout(seconds).ok_or(InvalidRunCode::Timeout)?),
    };
    let servers = servers_of(arguments)?;
    let session = match arguments.get("session") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => return Err(InvalidRunCode::Session),
    };
    let claims = RequestClaims::default();
    let code = code.to_owned();
    let (for_program, is_offered) = (false, false);
    Ok(RunCode { language, code, timeout, servers, session, for_program, claims, is_offered })
}

/// Parses the argument `servers` of `run_code`, or the same argument under another name. Two of them are an error, so that
/// neither widens the other.
fn servers_of(arguments: &JsonObject) -> Result<Option<Vec<String>>, InvalidRunCode> {
    let given = |name: &&str| arguments.get(*name).is_some_and(|value| !value.is_null());
    let mut names = ["servers"].into_iter().chain(OTHER_NAMES_OF_SERVERS).filter(given);
    let Some(name) = names.next() else { return Ok(None) };
    if let Some(second) = names.next() {
        return Err(InvalidRunCode::SeveralServers(name, second));
    }
    serde_json::from_value(arguments[name].clone()).map(Some).map_err(|_| InvalidRunCode::Servers)
}

/// Why the arguments of `search_tools` are invalid.
#[derive(Debug, Error)]
pub(crate) enum InvalidSearch {
    #[error("query must be a string")]
    Query,
    #[error("limit must be a whole number from 1 to {SEARCH_LIMIT_MAX}")]
    Limit,
    #[error(r#"detail must be "names", "signatures" or "full""#)]
    SearchDetail,
    #[error(r#"language must be "python" or "typescript""#)]
    Language,
}

/// Parses the arguments of `search_tools`.
pub(crate) fn search_request(arguments: &JsonObject) -> Result<SearchRequest, InvalidSearch> {
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
        None | Some(Value::Null) => Some(SearchDetail::default()),
        Some(detail) => detail.as_str().and_then(SearchDetail::parse),
    };
    let detail = detail.ok_or(InvalidSearch::SearchDetail)?;
    let language = match arguments.get("language").map(Value::as_str) {
        None | Some(Some("python")) => Language::Python,
        Some(Some("typescript" | "javascript")) => Language::Typescript,
        Some(_) => return Err(InvalidSearch::Language),
    };
    Ok(SearchRequest { query, limit, detail, language })
}

/// Why the arguments of `get_result` are invalid.
#[derive(Debug, Error)]
pub(crate) enum InvalidGetResult {
    #[error("handle is missing, or is not a string")]
    NoHandle,
    #[error(transparent)]
    Handle(#[from] InvalidName),
    #[error("wait_s must be a number of seconds, 0 or more")]
    Wait,
    #[error("offset must be a whole number, 0 or more")]
    Offset,
}

/// Parses the argument `handle` of `get_result`.
pub(crate) fn parse_handle(arguments: &JsonObject) -> Result<ResultHandle, InvalidGetResult> {
    let handle = arguments.get("handle").and_then(Value::as_str).ok_or(InvalidGetResult::NoHandle)?;
    Ok(ResultHandle::new(handle)?)
}

/// Parses the argument `wait_s` of `get_result`: how long to wait for the run to end. Returns `default` if the argument
/// is missing. Otherwise returns the argument, reduced to [`WAIT_MAX`] and to `limit`, the longest time that requests
/// of the AI client wait (`None` for no such limit).
pub(crate) fn parse_wait(
    arguments: &JsonObject,
    default: Duration,
    limit: Option<Duration>,
) -> Result<Duration, InvalidGetResult> {
    let most = limit.map_or(WAIT_MAX, |limit| limit.min(WAIT_MAX));
    match arguments.get("wait_s") {
        None | Some(Value::Null) => Ok(default),
        Some(seconds) => {
            let seconds = seconds.as_f64().filter(|seconds| *seconds >= 0.0).ok_or(InvalidGetResult::Wait)?;
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or(most).min(most))
        }
    }
}

/// Parses the argument `offset` of `get_result`: where the page of a stored result starts. Returns 0 if it is missing.
pub(crate) fn parse_offset(arguments: &JsonObject) -> Result<usize, InvalidGetResult> {
    let offset = match arguments.get("offset") {
        None | Some(Value::Null) => Some(0),
        Some(offset) => offset.as_u64().and_then(|offset| usize::try_from(offset).ok()),
    };
    offset.ok_or(InvalidGetResult::Offset)
}

/// Shortens an unknown tool, argument or language name to 80 characters, for an error message.
pub(crate) fn truncate_name(name: &str) -> String {
    name.chars().take(80).collect()
}

fn parse_timeout(seconds: &Value) -> Option<Duration> {
    let seconds = seconds.as_f64().filter(|seconds| *seconds > 0.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(arguments: &Value) -> JsonObject {
        arguments.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn invalid_run_code_arguments_are_reported() {
        let language = "use \"python\" or \"typescript\"";
        for (arguments, message) in [
            (
                json!({"language": "python", "code": "1", "time": 1}),
                "unknown argument \"time\": run_code takes language, code, session, timeout_s, servers",
            ),
            (json!({"language": "ruby", "code": "1"}), &format!("unknown language \"ruby\": {language}")),
            (json!({"code": "1"}), &format!("language is missing: {language}")),
            (json!({"language": "python", "code": 1}), "code is missing, or is not a string"),
            (
                json!({"language": "python", "code": "1", "timeout_s": 0}),
                "timeout_s must be a number of seconds above 0",
            ),
            (
                json!({"language": "python", "code": "1", "timeout_s": 1e300}),
                "timeout_s must be a number of seconds above 0",
            ),
            (json!({"language": "python", "code": "1", "servers": "a"}), "servers must be a list of names"),
            (
                json!({"language": "python", "code": "1", "requiredTools": 1}),
                "servers must be a list of names",
            ),
            (
                json!({"language": "python", "code": "1", "servers": ["a"], "requiredTools": ["b"]}),
                "servers and requiredTools are names of one argument: give one of them",
            ),
            (
                json!({"language": "python", "code": "1", "session": 1}),
                "session must be a string: the name of a session",
            ),
        ] {
            let wrong = run_code_request(&object(&arguments)).map(drop).expect_err(message);
            assert_eq!(wrong.to_string(), message);
        }
    }

    #[test]
    fn invalid_get_result_arguments_are_reported() {
        for (arguments, message) in [
            (json!({}), "handle is missing, or is not a string"),
            (json!({"handle": "a b"}), "result handle name \"a b\" is not valid"),
            (json!({"handle": "a", "offset": -1}), "offset must be a whole number, 0 or more"),
        ] {
            let arguments = object(&arguments);
            let parsed = parse_handle(&arguments).and_then(|_| parse_offset(&arguments));
            let wrong = parsed.expect_err(message).to_string();
            assert!(wrong.starts_with(message), "{wrong}");
        }
    }

    #[test]
    fn wait_s_is_validated_and_bounded() {
        let default = Duration::from_secs(7);
        for (arguments, expected) in [
            (json!({}), Some(default)),
            (json!({"wait_s": null}), Some(default)),
            (json!({"wait_s": 1.5}), Some(Duration::from_millis(1_500))),
            (json!({"wait_s": 1e300}), Some(WAIT_MAX)),
            (json!({"wait_s": -1}), None),
            (json!({"wait_s": "1"}), None),
        ] {
            assert_eq!(parse_wait(&object(&arguments), default, None).ok(), expected, "{arguments}");
        }
    }
}
