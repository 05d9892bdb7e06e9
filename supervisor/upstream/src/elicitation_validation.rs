//! Validates elicitation and sampling requests of upstream servers before an AI client gets them. Both are limited
//! in size. A validated elicitation request also has no hidden characters, and its message names the server that
//! asks. A sampling request is not changed.

use lockhouse_base::json::{self, JsonFault};
use lockhouse_messages::Question;
use lockhouse_policies::printable;
use lockhouse_protocol::ServerName;
use serde_json::{Map, Value};

/// Maximum length, in bytes, of the JSON text of an elicitation request's parameters.
/// Bound: approvals and questions.
pub(super) const QUESTION_BYTES_MAX: usize = 32 * 1024;
/// Maximum length, in bytes, of the JSON text of a sampling request's parameters.
/// Bound: approvals and questions.
const SAMPLING_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of the message of a question, in characters.
/// Bound: approvals and questions.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Maximum number of JSON values in the parameters of an elicitation or sampling request.
const VALUES_MAX: usize = 10_000;
/// Maximum number of fields of a question's form.
/// Bound: approvals and questions.
const FIELDS_MAX: usize = 40;
/// Maximum length of the address of a question, in bytes.
/// Bound: approvals and questions.
const URL_BYTES_MAX: usize = 2_048;

/// Why a question of an upstream server is not shown to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidQuestion {
    /// The question is larger than this number of bytes, or has too many values.
    #[error("it is larger than {0} bytes, or has more than {VALUES_MAX} values")]
    TooLarge(usize),
    #[error("it has no message, or no form or URL that is valid in MCP")]
    Malformed,
    #[error(
        "its form has a field that is not text, a number, a boolean or a choice, or more than {FIELDS_MAX} fields"
    )]
    Form,
    #[error("its form has hidden characters in the names of fields or in choices")]
    Hidden,
    #[error("its URL is not an http or https URL, contains a user name, or is too long")]
    Url,
}

fn object(parameters: &str, bytes_max: usize) -> Result<Map<String, Value>, InvalidQuestion> {
    if parameters.len() > bytes_max {
        return Err(InvalidQuestion::TooLarge(bytes_max));
    }
    match json::parse_bounded(parameters.as_bytes(), VALUES_MAX) {
        Ok(Value::Object(parameters)) => Ok(parameters),
        Err(JsonFault::TooManyValues) => Err(InvalidQuestion::TooLarge(bytes_max)),
        Ok(_) | Err(_) => Err(InvalidQuestion::Malformed),
    }
}

/// Validates the parameters of an `elicitation/create` request of the upstream server `server`, of any MCP
/// version.
pub(super) fn elicitation(server: &ServerName, parameters: &str) -> Result<Question, InvalidQuestion> {
    let parameters = object(parameters, QUESTION_BYTES_MAX)?;
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let message = one_line(text("message").ok_or(InvalidQuestion::Malformed)?);
    if text("mode") == Some("url") {
        let url = url(text("url").ok_or(InvalidQuestion::Malformed)?).ok_or(InvalidQuestion::Url)?;
        let host = url.host_str().unwrap_or_default();
        let message = format!("Server {server} asks you to open a page of {host}: {message}");
        let id = printable(text("elicitationId").unwrap_or_default());
        return Ok(Question::Url { message, url: url.into(), id });
    }
    let mut schema = parameters.get("requestedSchema").cloned().ok_or(InvalidQuestion::Malformed)?;
    check_form(&schema)?;
    sanitize_texts(&mut schema)?;
    Ok(Question::Form { message: format!("Server {server} asks: {message}"), schema })
}

/// Validates the parameters of a server's `sampling/createMessage` request.
pub(super) fn sampling(parameters: &str) -> Result<Question, InvalidQuestion> {
    Ok(Question::Sampling(Value::Object(object(parameters, SAMPLING_BYTES_MAX)?)))
}

fn url(text: &str) -> Option<url::Url> {
    let url = url::Url::parse(text).ok().filter(|_| text.len() <= URL_BYTES_MAX)?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.host_str().is_some();
    (matches!(url.scheme(), "http" | "https") && is_plain).then_some(url)
}

/// Checks that the schema of a form is an object schema whose fields are not nested, as MCP requires.
fn check_form(schema: &Value) -> Result<(), InvalidQuestion> {
    let fields = schema.get("properties").and_then(Value::as_object).ok_or(InvalidQuestion::Form)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") || fields.len() > FIELDS_MAX {
        return Err(InvalidQuestion::Form);
    }
    let is_flat = |field: &Value| match field.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => {
            ["properties", "items", "$ref"].iter().all(|part| field.get(part).is_none())
        }
        // A multiple choice.
        Some("array") => field.get("items").is_some_and(|items| {
            ["enum", "anyOf", "oneOf"].iter().any(|choice| items.get(choice).is_some_and(Value::is_array))
        }),
        _ => false,
    };
    if fields.values().all(is_flat) { Ok(()) } else { Err(InvalidQuestion::Form) }
}

/// Removes hidden characters from the texts in a form's schema that are only displayed: titles, descriptions and
/// names of choices (`enumNames`). Rejects hidden characters in all other texts, because the AI client returns field
/// names and choices to the server unchanged.
fn sanitize_texts(value: &mut Value) -> Result<(), InvalidQuestion> {
    match value {
        Value::Object(map) => map.iter_mut().try_for_each(|(name, value)| {
            if printable(name) != *name {
                return Err(InvalidQuestion::Hidden);
            }
            match value {
                Value::String(words) if matches!(name.as_str(), "title" | "description") => {
                    *words = one_line(words);
                    Ok(())
                }
                Value::Array(words) if name == "enumNames" => {
                    for word in words {
                        *word = one_line(word.as_str().unwrap_or_default()).into();
                    }
                    Ok(())
                }
                value => sanitize_texts(value),
            }
        }),
        Value::Array(values) => values.iter_mut().try_for_each(sanitize_texts),
        Value::String(text) if printable(text) != *text => Err(InvalidQuestion::Hidden),
        _ => Ok(()),
    }
}

/// Puts a text of an upstream server on one line, so that it cannot imitate other texts of the question. A text that
/// is too long is truncated, with a note that says so.
fn one_line(text: &str) -> String {
    let cut: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
    let line = printable(&cut.split_whitespace().collect::<Vec<_>>().join(" "));
    match text.chars().count().saturating_sub(MESSAGE_CHARS_MAX) {
        0 => line,
        more => format!("{line} (INCOMPLETE: {more} more characters are not shown)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(parameters: &Value) -> Result<Question, InvalidQuestion> {
        elicitation(&ServerName::new("github").expect("a name"), &parameters.to_string())
    }

    fn form(properties: Value) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}})
    }

    #[test]
    fn a_form_names_the_server_and_keeps_its_fields() {
        let properties = json!({
            "name": {"type": "string", "title": "Your\u{1b}[31m name", "default": "Ada"},
            "color": {"type": "string", "enum": ["red", "green"]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
            "title": {"type": "boolean"},
        });
        let mut parameters = form(properties);
        parameters["message"] = "Who?\n\u{202e}Server bank asks: the PIN".into();
        let Ok(Question::Form { message, schema }) = read(&parameters) else { panic!("no form") };
        assert_eq!(message, "Server github asks: Who? \u{fffd}Server bank asks: the PIN");
        assert_eq!(schema["properties"]["name"]["title"], "Your\u{fffd}[31m name");
        assert_eq!(schema["properties"]["name"]["default"], "Ada");
        assert_eq!(schema["properties"]["title"]["type"], "boolean");
    }

    #[test]
    fn a_message_that_is_cut_says_so() {
        let mut parameters = form(json!({}));
        for (length, incomplete) in [(2_000, false), (2_007, true)] {
            parameters["message"] = "x".repeat(length).into();
            let Ok(Question::Form { message, .. }) = read(&parameters) else { panic!("no form") };
            let is_marked = message.ends_with("x (INCOMPLETE: 7 more characters are not shown)");
            assert_eq!(is_marked, incomplete, "{message}");
        }
    }

    #[test]
    fn a_url_shows_its_host() {
        let ask = |url: &str| read(&json!({"mode": "url", "message": "Sign in", "url": url}));
        let Ok(Question::Url { message, .. }) = ask("https://login.example.com/x?y") else {
            panic!("no URL")
        };
        assert_eq!(message, "Server github asks you to open a page of login.example.com: Sign in");
        for bad in ["javascript:alert(1)", "file:///etc/passwd", "https://bank.com@evil.example/", "x"] {
            assert_eq!(ask(bad), Err(InvalidQuestion::Url), "{bad}");
        }
        assert_eq!(ask(&format!("https://x/{}", "y".repeat(3_000))), Err(InvalidQuestion::Url));
    }

    #[test]
    fn an_invalid_or_misleading_question_is_rejected() {
        let many: Map<String, Value> =
            (0..50).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
        let nested = json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}});
        for (parameters, why) in [
            (json!({}), InvalidQuestion::Malformed),
            (json!({"message": 3}), InvalidQuestion::Malformed),
            (json!({"message": "x"}), InvalidQuestion::Malformed),
            (json!({"message": "x", "requestedSchema": []}), InvalidQuestion::Form),
            (form(nested), InvalidQuestion::Form),
            (form(json!({"a": {"$ref": "https://x"}})), InvalidQuestion::Form),
            (form(Value::Object(many)), InvalidQuestion::Form),
            (form(json!({"a\u{200b}": {"type": "string"}})), InvalidQuestion::Hidden),
            (form(json!({"a": {"type": "string", "enum": ["x\u{7}"]}})), InvalidQuestion::Hidden),
            (
                form(json!({"a": {"type": "string", "description": "x".repeat(40_000)}})),
                InvalidQuestion::TooLarge(QUESTION_BYTES_MAX),
            ),
        ] {
            assert_eq!(read(&parameters), Err(why), "{parameters}");
        }
        assert!(read(&form(json!({"a": {"type": "string"}}))).is_ok());
    }

    #[test]
    fn a_sampling_request_has_a_limit_of_its_own() {
        let ask = |length: usize| sampling(&json!({"a": "x".repeat(length)}).to_string());
        assert!(ask(QUESTION_BYTES_MAX).is_ok());
        let error = ask(SAMPLING_BYTES_MAX).expect_err("too large").to_string();
        assert_eq!(error, "it is larger than 262144 bytes, or has more than 10000 values");
    }
}
