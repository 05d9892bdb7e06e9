//! Tests of the JSON of an answer: which members it has, and in which order.

use lockhouse_protocol::FailureCode;
use serde_json::json;

use super::*;

fn handle() -> ResultHandle {
    ResultHandle::new("r-1").expect("a handle")
}

/// Returns an answer with a part of each kind. Its value is the JSON `null`, which is not the same as no value.
pub(crate) fn answer(execution: ExecutionId) -> RunAnswer {
    let cut = CutPart { bytes: 9, shown: 4, omissions: vec![json!({"path": "$"})], handle: Some(handle()) };
    let call = CallReport {
        server: "git".into(),
        item: CalledItem::Tool("log".into()),
        outcome: CallOutcome::Failed(FailureCode::Timeout),
        changes: true,
        likely_read: true,
        content_aside: false,
        count: Some(2),
        ms: 1.5,
        bytes: 0,
    };
    let stored = StoredFileReport {
        name: "a".into(),
        mime_type: "a/b".into(),
        bytes: 1,
        handle: handle(),
        content: 1,
        expires_s: 60,
        ends_with_client: true,
    };
    let error = RunError { code: Some("timeout".to_owned().into()), ..RunError::new("ToolError", "no") };
    assert_eq!(error.code, Some(ErrorCode::Failure(FailureCode::Timeout)));
    RunAnswer {
        value: Some(ShownValue { json: RawValue::NULL.to_owned(), cut: Some(cut.clone()) }),
        stdout: ShownText { text: "x".into(), cut: Some(cut) },
        error: Some(error),
        session: Some(SessionReport { name: "work".into(), runs: 1, ended: Some("it failed".into()) }),
        usage: Some(RunUsage { calls: vec![call], is_grouped: true, stats: RunStats::default() }),
        sandbox: Some(Sandbox { reduced: vec!["landlock".into()] }),
        files: vec![
            FileReport::Stored(stored),
            FileReport::LeftOut { name: "b".into(), reason: "too large".into() },
        ],
        ..RunAnswer::new(Some(execution), RunStatus::Limit)
    }
}

#[test]
fn an_answer_has_its_members_in_one_order() {
    let answer = answer(ExecutionId(7));
    let cut = r#"{"bytes":9,"shown":4,"cut":[{"path":"$"}],"handle":"r-1"}"#;
    let value = r#""preview":null,"#;
    let output = r#""stdout":"x","#;
    let others = [
        r#""error":{"type":"ToolError","message":"no","code":"timeout"},"#,
        r#""session":{"name":"work","runs":1,"new":true,"ended":"it failed; its variables are lost"},"#,
        r#""calls":[{"server":"git","tool":"log","outcome":"timeout","changes":true,"likely_read":true,"count":2,"ms":1.5,"bytes":0}],"#,
        r#""stats":{"tool_calls":0,"bytes_kept_out":0},"#,
        r#""sandbox":{"level":"reduced","reduced":["landlock"]},"#,
        &format!(r#""truncated":{{"value":{cut},"stdout":{cut},"calls":{{"count":0,"shown":"grouped by tool and outcome"}}}},"#),
        r#""files":[{"name":"a","mime_type":"a/b","bytes":1,"handle":"r-1","uri":"lockhouse://result/r-1","content":1,"expires_s":60,"ends_with_client":true},"#,
        r#"{"name":"b","left_out":"too large"}]"#,
    ]
    .concat();
    let head = format!(r#""execution":"{}","status":"limit","#, ExecutionId(7));
    let all = answer.members(CutValue::Preview);
    let with_value = AnswerMembers { with_output: false, ..all };
    let with_output = AnswerMembers { with_value: false, ..all };
    for (members, expected) in [
        (all, format!("{{{head}{value}{output}{others}}}")),
        (with_value, format!("{{{head}{value}{others}}}")),
        (with_output, format!("{{{head}{output}{others}}}")),
    ] {
        assert_eq!(serde_json::to_string(&members).expect("JSON"), expected);
        assert_eq!(members.to_json().to_string(), expected);
    }
    let named_value = answer.members(CutValue::Value).to_json();
    assert_eq!((named_value.get("value"), named_value.get("preview")), (Some(&json!(null)), None));
}

#[test]
fn an_answer_without_a_run_has_no_members_of_a_run() {
    let answer = RunAnswer::without_run("Busy", "later");
    let expected = r#"{"status":"error","error":{"type":"Busy","message":"later"}}"#;
    assert_eq!(answer.members(CutValue::Preview).to_json().to_string(), expected);
}
