//! Converts approval prompts into MCP elicitation forms, and parses the answers.

use lockhouse_messages::{Answer, Question};
use serde_json::{Value, json};

use super::Approval;
use super::outcome::{ApprovalRefusal, PromptOutcome};
use super::prompt::Prompt;

/// Returns an elicitation form for a prompt. Its only field is the scope of the approval. The field is optional:
/// if the user accepts the form without a scope, these calls are approved once.
pub(super) fn build_question(prompt: &Prompt) -> Question {
    let scopes: Vec<&str> = prompt.scopes().into_iter().map(Approval::as_str).collect();
    let message = format!("{}Accept to approve, decline to refuse.\n{}", prompt.text(), prompt.scopes_text());
    let schema = json!({"type": "object", "properties": {"scope": {
        "type": "string", "title": "Scope", "description": "How far the approval reaches; once if nothing is chosen.",
        "enum": scopes, "default": "once",
    }}});
    Question::Form { message, schema }
}

/// Parses the answer to a form. `offered` are the approval scopes that the form offers. An answer with any other
/// scope counts as a refusal.
pub(super) fn parse_answer(answer: Answer, offered: &[Approval]) -> PromptOutcome {
    let content = match answer {
        Answer::Accept(content) => content.unwrap_or(Value::Null),
        Answer::Decline => return PromptOutcome::Refused(ApprovalRefusal::Declined),
        Answer::Cancel => return PromptOutcome::Refused(ApprovalRefusal::Cancelled),
        Answer::TimedOut => return PromptOutcome::Refused(ApprovalRefusal::TimedOut),
        Answer::Malformed => return PromptOutcome::Refused(ApprovalRefusal::NoAnswer),
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
        Some(scope) => PromptOutcome::Approved(scope),
        None => PromptOutcome::Refused(ApprovalRefusal::NoAnswer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_an_offered_answer_declines() {
        use Approval::{Always, Execution, Once};
        let accept = |content: Value| Answer::Accept(Some(content));
        let refused = PromptOutcome::Refused;
        for (answer, expected) in [
            (Answer::Accept(None), PromptOutcome::Approved(Once)),
            (accept(Value::Null), PromptOutcome::Approved(Once)),
            (accept(json!({})), PromptOutcome::Approved(Once)),
            (accept(json!({"scope": "once"})), PromptOutcome::Approved(Once)),
            (accept(json!({"scope": "execution"})), PromptOutcome::Approved(Execution)),
            (accept(json!({"scope": "always"})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"scope": "Once"})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"scope": "forever"})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"scope": null})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"scope": ["once"]})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"scope": "once", "more": 1})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!({"approve": true})), refused(ApprovalRefusal::NoAnswer)),
            (accept(json!("once")), refused(ApprovalRefusal::NoAnswer)),
            (Answer::Decline, refused(ApprovalRefusal::Declined)),
            (Answer::Cancel, refused(ApprovalRefusal::Cancelled)),
            (Answer::TimedOut, refused(ApprovalRefusal::TimedOut)),
            (Answer::Malformed, refused(ApprovalRefusal::NoAnswer)),
        ] {
            assert_eq!(parse_answer(answer.clone(), &[Once, Execution]), expected, "{answer:?}");
        }
        assert_eq!(
            parse_answer(accept(json!({"scope": "always"})), &[Once, Always]),
            PromptOutcome::Approved(Always)
        );
    }
}
