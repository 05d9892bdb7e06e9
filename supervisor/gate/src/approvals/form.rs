//! A prompt as a form of the AI client, and the person's answer to it.

use lockhouse_upstream::ai_client::{Answer, Question};
use serde_json::{Value, json};

use super::Approval;
use super::outcome::{Outcome, Refusal};
use super::prompt::Prompt;

/// One field at most, with the narrowest scope first. Who accepts without a word approves once.
pub(super) fn question(prompt: &Prompt) -> Question {
    let scopes: Vec<&str> = prompt.scopes().into_iter().map(Approval::as_str).collect();
    let message =
        format!("{}Accept to approve, decline to refuse.\n{}", prompt.text(), prompt.scopes_in_words());
    let schema = json!({"type": "object", "properties": {"scope": {
        "type": "string", "title": "Scope", "description": "How far the approval reaches; once if nothing is chosen.",
        "enum": scopes, "default": "once",
    }}});
    Question::Form { message, schema }
}

/// What is not one of the answers that were offered declines.
pub(super) fn read(answer: Answer, offered: &[Approval]) -> Outcome {
    let content = match answer {
        Answer::Accept(content) => content.unwrap_or(Value::Null),
        Answer::Decline => return Outcome::Refused(Refusal::Declined),
        Answer::Cancel => return Outcome::Refused(Refusal::Cancelled),
        Answer::Silence => return Outcome::Refused(Refusal::TimedOut),
        Answer::Garbled => return Outcome::Refused(Refusal::NoAnswer),
    };
    let scope = match &content {
        Value::Null => Some(Approval::Once),
        Value::Object(fields) if fields.is_empty() => Some(Approval::Once),
        Value::Object(fields) if fields.len() == 1 => {
            fields.get("scope").and_then(|scope| serde_json::from_value(scope.clone()).ok())
        }
        _ => None,
    };
    match scope.filter(|scope| offered.contains(scope)) {
        Some(scope) => Outcome::Approved(scope),
        None => Outcome::Refused(Refusal::NoAnswer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_an_offered_answer_declines() {
        use Approval::{Always, Execution, Once};
        let accept = |content: Value| Answer::Accept(Some(content));
        let refused = Outcome::Refused;
        for (answer, expected) in [
            (Answer::Accept(None), Outcome::Approved(Once)),
            (accept(Value::Null), Outcome::Approved(Once)),
            (accept(json!({})), Outcome::Approved(Once)),
            (accept(json!({"scope": "once"})), Outcome::Approved(Once)),
            (accept(json!({"scope": "execution"})), Outcome::Approved(Execution)),
            (accept(json!({"scope": "always"})), refused(Refusal::NoAnswer)),
            (accept(json!({"scope": "Once"})), refused(Refusal::NoAnswer)),
            (accept(json!({"scope": "forever"})), refused(Refusal::NoAnswer)),
            (accept(json!({"scope": null})), refused(Refusal::NoAnswer)),
            (accept(json!({"scope": ["once"]})), refused(Refusal::NoAnswer)),
            (accept(json!({"scope": "once", "more": 1})), refused(Refusal::NoAnswer)),
            (accept(json!({"approve": true})), refused(Refusal::NoAnswer)),
            (accept(json!("once")), refused(Refusal::NoAnswer)),
            (Answer::Decline, refused(Refusal::Declined)),
            (Answer::Cancel, refused(Refusal::Cancelled)),
            (Answer::Silence, refused(Refusal::TimedOut)),
            (Answer::Garbled, refused(Refusal::NoAnswer)),
        ] {
            assert_eq!(read(answer.clone(), &[Once, Execution]), expected, "{answer:?}");
        }
        assert_eq!(read(accept(json!({"scope": "always"})), &[Once, Always]), Outcome::Approved(Always));
    }
}
