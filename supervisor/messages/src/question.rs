//! What a server asks of a person, made fit to be shown: bounded, without hidden characters, and with who asks.

use lockhouse_base::json::{self, JsonFault};
use lockhouse_policies::printable;
use lockhouse_protocol::ServerName;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Bytes of a question as its server sent it.
pub const QUESTION_BYTES_MAX: usize = 32 * 1024;
/// And of what it asks a model.
const SAMPLING_BYTES_MAX: usize = 256 * 1024;
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Values of either.
const VALUES_MAX: usize = 10_000;
const FIELDS_MAX: usize = 40;
const URL_BYTES_MAX: usize = 2_048;

/// How a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Form,
    Url,
    /// Of the client's model, and not of a person.
    Sampling,
}

/// A question that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// A form of flat fields.
    Form { message: String, schema: Value },
    /// A page to be opened.
    Url { message: String, url: String, id: String },
    /// Parameters of `sampling/createMessage`, for the client to judge: no part of them is shown as ours.
    Sampling(Value),
}

/// Why a question is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("it is larger than {QUESTION_BYTES_MAX} bytes, or has more than {VALUES_MAX} values")]
    TooLarge,
    #[error("it has no message, or no form or URL that MCP knows")]
    Malformed,
    #[error(
        "its form has a field that is not text, a number, a boolean or a choice, or more than {FIELDS_MAX} fields"
    )]
    Form,
    #[error("its form has hidden characters in the names of fields or in choices")]
    Hidden,
    #[error("its URL is not one of http or https, has a user name in it, or is too long")]
    Url,
}

fn object(parameters: &str) -> Result<Map<String, Value>, Unfit> {
    match json::tree(parameters.as_bytes(), VALUES_MAX) {
        Ok(Value::Object(parameters)) => Ok(parameters),
        Err(JsonFault::TooManyValues) => Err(Unfit::TooLarge),
        Ok(_) | Err(_) => Err(Unfit::Malformed),
    }
}

impl Question {
    /// The parameters of `elicitation/create`, of whichever era.
    pub fn read(server: &ServerName, parameters: &str) -> Result<Self, Unfit> {
        if parameters.len() > QUESTION_BYTES_MAX {
            return Err(Unfit::TooLarge);
        }
        let parameters = object(parameters)?;
        let text = |name: &str| parameters.get(name).and_then(Value::as_str);
        let message = one_line(text("message").ok_or(Unfit::Malformed)?);
        if text("mode") == Some("url") {
            let url = url(text("url").ok_or(Unfit::Malformed)?).ok_or(Unfit::Url)?;
            let host = url.host_str().unwrap_or_default();
            let message = format!("Server {server} asks you to open a page of {host}: {message}");
            let id = printable(text("elicitationId").unwrap_or_default());
            return Ok(Self::Url { message, url: url.into(), id });
        }
        let mut schema = parameters.get("requestedSchema").cloned().ok_or(Unfit::Malformed)?;
        check_form(&schema)?;
        tidy(&mut schema)?;
        Ok(Self::Form { message: format!("Server {server} asks: {message}"), schema })
    }

    /// What a server asks of the client's model.
    pub fn sampling(parameters: &str) -> Result<Self, Unfit> {
        if parameters.len() > SAMPLING_BYTES_MAX {
            return Err(Unfit::TooLarge);
        }
        Ok(Self::Sampling(Value::Object(object(parameters)?)))
    }

    /// The parameters of `elicitation/create` that show it; none where it is of another kind.
    pub fn shown(&self) -> Option<Value> {
        match self {
            Self::Form { message, schema } => {
                Some(json!({"mode": "form", "message": message, "requestedSchema": schema}))
            }
            Self::Url { message, url, id } => {
                Some(json!({"mode": "url", "message": message, "url": url, "elicitationId": id}))
            }
            Self::Sampling(_) => None,
        }
    }

    pub fn mode(&self) -> Mode {
        match self {
            Self::Form { .. } => Mode::Form,
            Self::Url { .. } => Mode::Url,
            Self::Sampling(_) => Mode::Sampling,
        }
    }
}

fn url(text: &str) -> Option<url::Url> {
    let url = url::Url::parse(text).ok().filter(|_| text.len() <= URL_BYTES_MAX)?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.host_str().is_some();
    (matches!(url.scheme(), "http" | "https") && is_plain).then_some(url)
}

/// An object whose fields have no parts of their own, as MCP says.
fn check_form(schema: &Value) -> Result<(), Unfit> {
    let fields = schema.get("properties").and_then(Value::as_object).ok_or(Unfit::Form)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") || fields.len() > FIELDS_MAX {
        return Err(Unfit::Form);
    }
    let is_flat = |field: &Value| match field.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => {
            ["properties", "items", "$ref"].iter().all(|part| field.get(part).is_none())
        }
        // Several of a choice.
        Some("array") => field.get("items").is_some_and(|items| {
            ["enum", "anyOf", "oneOf"].iter().any(|choice| items.get(choice).is_some_and(Value::is_array))
        }),
        _ => false,
    };
    if fields.values().all(is_flat) { Ok(()) } else { Err(Unfit::Form) }
}

/// Words are cleaned. Names and choices come back to the server as they are, so they must be clean already.
fn tidy(value: &mut Value) -> Result<(), Unfit> {
    match value {
        Value::Object(map) => map.iter_mut().try_for_each(|(name, value)| {
            if printable(name) != *name {
                return Err(Unfit::Hidden);
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
                value => tidy(value),
            }
        }),
        Value::Array(values) => values.iter_mut().try_for_each(tidy),
        Value::String(text) if printable(text) != *text => Err(Unfit::Hidden),
        _ => Ok(()),
    }
}

/// On one line, so that nothing in it looks like words of ours. It says what of it is not shown.
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

    fn read(parameters: &Value) -> Result<Question, Unfit> {
        Question::read(&ServerName::new("github").expect("a name"), &parameters.to_string())
    }

    fn form(properties: Value) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties}})
    }

    #[test]
    fn a_form_says_who_asks_and_keeps_what_it_asks() {
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
            let told = message.ends_with("x (INCOMPLETE: 7 more characters are not shown)");
            assert_eq!(told, incomplete, "{message}");
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
            assert_eq!(ask(bad), Err(Unfit::Url), "{bad}");
        }
        assert_eq!(ask(&format!("https://x/{}", "y".repeat(3_000))), Err(Unfit::Url));
    }

    #[test]
    fn what_cannot_be_shown_honestly_is_not_shown() {
        let many: Map<String, Value> =
            (0..50).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
        let nested = json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}});
        for (parameters, why) in [
            (json!({}), Unfit::Malformed),
            (json!({"message": 3}), Unfit::Malformed),
            (json!({"message": "x"}), Unfit::Malformed),
            (json!({"message": "x", "requestedSchema": []}), Unfit::Form),
            (form(nested), Unfit::Form),
            (form(json!({"a": {"$ref": "https://x"}})), Unfit::Form),
            (form(Value::Object(many)), Unfit::Form),
            (form(json!({"a\u{200b}": {"type": "string"}})), Unfit::Hidden),
            (form(json!({"a": {"type": "string", "enum": ["x\u{7}"]}})), Unfit::Hidden),
            (form(json!({"a": {"type": "string", "description": "x".repeat(40_000)}})), Unfit::TooLarge),
        ] {
            assert_eq!(read(&parameters), Err(why), "{parameters}");
        }
        assert!(read(&form(json!({"a": {"type": "string"}}))).is_ok());
    }
}
