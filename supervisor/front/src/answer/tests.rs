//! Tests of the conversion of answers: what a model reads in each form, and what a program can parse.

use std::time::Duration;

use insta::assert_snapshot;
use lockhouse_messages::{
    CallReport, CalledItem, CutPart, FileReport, Progress, ResultFile, RunError, RunState, RunUsage, RunView,
    ShownText, ShownValue, StoredFileReport,
};
use lockhouse_protocol::{CallOutcome, ExecutionId, FailureCode};
use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

const HANDLE: &str = "5700d3a91e405700d3a91e405700d3a9";
const EXECUTION: ExecutionId = ExecutionId(7);

fn handle() -> ResultHandle {
    ResultHandle::new(HANDLE).expect("a handle")
}

fn run(answer: RunAnswer) -> ToolAnswer {
    with_files(answer, Vec::new())
}

fn with_files(answer: RunAnswer, files: Vec<ResultFile>) -> ToolAnswer {
    let (begun, ended) = ("then".into(), "now".into());
    ToolAnswer::Run(Arc::new(FinishedRun {
        execution: EXECUTION,
        cancelled: false,
        begun,
        ended,
        answer,
        files,
    }))
}

/// Returns the answer to a run that succeeded without a value.
fn empty() -> RunAnswer {
    RunAnswer { usage: Some(RunUsage::default()), ..RunAnswer::new(Some(EXECUTION), RunStatus::Ok) }
}

fn with_value(value: &Value) -> RunAnswer {
    let json = to_raw_value(value).expect("JSON");
    RunAnswer { value: Some(ShownValue { json, cut: None }), ..empty() }
}

fn with_calls(calls: Vec<CallReport>) -> RunAnswer {
    RunAnswer { usage: Some(RunUsage { calls, ..RunUsage::default() }), ..with_value(&json!(1)) }
}

fn printed(text: &str) -> ShownText {
    ShownText { text: text.into(), cut: None }
}

/// Returns the report about a call that may have changed something.
fn call(tool: &str, outcome: CallOutcome) -> CallReport {
    CallReport {
        server: "s".into(),
        item: CalledItem::Tool(tool.into()),
        outcome,
        changes: true,
        likely_read: false,
        content_aside: false,
        count: None,
        ms: 1.0,
        bytes: 0,
    }
}

fn part(json: Value) -> ToolAnswer {
    ToolAnswer::Part(handle(), json)
}

/// Returns the text blocks of an answer.
fn blocks(answer: ToolAnswer, form: AnswerForm) -> Vec<String> {
    let content = answer.into_result(form, "get_result").content;
    content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect()
}

fn text(answer: ToolAnswer) -> String {
    blocks(answer, AnswerForm::Text).join("\n---")
}

fn cut() -> RunAnswer {
    let mut answer = with_value(&json!([1, "… 9,998 more items, [1] to [9998] …", 3]));
    let cut = CutPart { bytes: 327_800, shown: 10_157, omissions: Vec::new(), handle: Some(handle()) };
    answer.value = answer.value.map(|value| ShownValue { cut: Some(cut), ..value });
    RunAnswer { cut_hint: Some("next part".into()), ..answer }
}

fn failed() -> RunAnswer {
    let error = RunError {
        code: Some("denied".to_owned().into()),
        line: Some(4),
        column: Some(9),
        traceback: Some(
            "Traceback (most recent call last):\n  File \"<code>\", line 9, in <module>\n    main()\n  File \"<code>\", line 4, in main\n    delete(1)\n    ^^^^\nToolError"
                .into(),
        ),
        hint: Some("ask a user".into()),
        changed: Some("1 call was already made: a.b (line 1)".into()),
        ..RunError::new("ToolError", "the policy does not allow it")
    };
    let answer = RunAnswer { value: None, ..with_calls(vec![call("b", CallOutcome::Ok)]) };
    RunAnswer { status: RunStatus::Error, error: Some(error), stdout: printed("page 1\n"), ..answer }
}

fn running() -> ToolAnswer {
    let progress = Progress {
        elapsed: Duration::from_secs(44),
        finished_calls: 12,
        in_flight: [("github.list_issues".to_owned(), 3)].into(),
        waiting_for: None,
        stdout: "page 2\n".into(),
    };
    let (age, begun, state) = (Duration::from_millis(45_040), "then".into(), RunState::Running(progress));
    let view = RunView { execution: EXECUTION, age, begun, state };
    ToolAnswer::Running(RunningAnswer { view, handle: handle() })
}

#[test]
fn a_whole_value_is_the_only_text_of_its_block() {
    for (value, expected) in [
        (json!({"a": [1, null]}), r#"{"a":[1,null]}"#),
        (json!("text\n"), r#""text\n""#),
        (json!(null), "null"),
        (json!(1.5), "1.5"),
    ] {
        for form in [AnswerForm::Text, AnswerForm::Value] {
            assert_eq!(blocks(run(with_value(&value)), form), [expected]);
        }
    }
}

#[test]
fn output_and_calls_with_effects_have_blocks_of_their_own() {
    let failed = CallOutcome::Failed;
    let answer = || {
        let calls = vec![
            call("write", CallOutcome::Ok),
            CallReport { changes: false, ..call("read", CallOutcome::Ok) },
            call("write", CallOutcome::Ok),
            call("send", failed(FailureCode::Timeout)),
            call("drop", failed(FailureCode::Denied)),
            call("move", failed(FailureCode::ToolFailed)),
        ];
        run(RunAnswer { stdout: printed("one\n"), stderr: printed("two\n"), ..with_calls(calls) })
    };
    assert_snapshot!(text(answer()), @r"
    1
    ---
    one
    stderr:
    two

    ---
    May have changed something: s.write ×2; failed: s.move; outcome unknown: s.send
    ");
    assert_eq!(blocks(answer(), AnswerForm::Value), ["1"]);
}

#[test]
fn the_list_of_changes_is_bounded() {
    let twice = |tool: String| CallReport { count: Some(2), ..call(&tool, CallOutcome::Ok) };
    let calls = (0..30).map(|number| twice(format!("t{number}"))).collect();
    let line = text(run(with_calls(calls)));
    assert_eq!(line, "1\n---\nMay have changed something: s.t0 ×2, s.t1 ×2, s.t2 ×2, 27 more tools");
    let after = |tools: &[(&str, CallOutcome)]| {
        let calls = tools.iter().map(|(tool, outcome)| call(tool, *outcome)).collect();
        text(run(with_calls(calls))).rsplit_once("something: ").map(|(_, names)| names.to_owned())
    };
    let [failed, unknown] = [FailureCode::ToolFailed, FailureCode::Timeout].map(CallOutcome::Failed);
    let ok = CallOutcome::Ok;
    for (tools, expected) in [
        (vec![("a", ok), ("b", ok), ("c", ok), ("d", ok)], "s.a, s.b, s.c, 1 more tool"),
        (vec![("a", ok), ("b", ok), ("c", ok), ("d", failed)], "s.a, s.b, 1 more tool; failed: s.d"),
        (
            vec![("a", ok), ("b", ok), ("c", failed), ("d", failed), ("e", unknown), ("f", unknown)],
            "s.a, 1 more tool; failed: s.c, 1 more tool; outcome unknown: s.e, 1 more tool",
        ),
        (vec![("a", ok), ("b", unknown), ("c", unknown)], "s.a; outcome unknown: s.b, s.c"),
    ] {
        assert_eq!(after(&tools).as_deref(), Some(expected), "{tools:?}");
    }
}

#[test]
fn only_calls_that_may_have_been_sent_are_listed() {
    for outcome in CallOutcome::all() {
        let text = text(run(with_calls(vec![call("send", outcome)])));
        assert_eq!(text.contains("s.send"), outcome.was_sent(), "{}: {text}", outcome.as_str());
    }
}

#[test]
fn calls_that_likely_read_are_not_listed_after_a_success() {
    let read = CallReport { likely_read: true, ..call("list", CallOutcome::Ok) };
    let after = |calls: Vec<CallReport>| text(run(with_calls(calls)));
    assert_eq!(
        after(vec![read.clone(), call("send", CallOutcome::Ok)]),
        "1\n---\nMay have changed something: s.send"
    );
    assert_eq!(after(vec![read]), "1");
}

#[test]
fn the_form_value_has_output_changes_and_files_where_there_is_no_whole_value() {
    let file = FileReport::Stored(StoredFileReport {
        name: "a.csv".into(),
        mime_type: "text/csv".into(),
        bytes: 1_200,
        handle: handle(),
        content: 1,
        expires_s: 3_600,
        ends_with_client: true,
    });
    let whole = RunAnswer {
        stdout: printed("one\n"),
        files: vec![file],
        ..with_calls(vec![call("send", CallOutcome::Ok)])
    };
    let beside = RunAnswer { value: None, ..whole.clone() };
    let file = format!(
        "\nFiles: a.csv (1,200 bytes, handle {HANDLE}). `lockhouse result HANDLE --out DIR` saves one until this client \
         disconnects, at most 60 min."
    );
    let changes = "\nMay have changed something: s.send";
    assert_eq!(
        blocks(run(beside.clone()), AnswerForm::Value),
        ["No value, only printed output.", "\none\n", changes, &file]
    );
    assert_eq!(blocks(run(whole.clone()), AnswerForm::Value), ["1"]);
    assert_eq!(blocks(run(whole), AnswerForm::Text), ["1", "\none\n", changes, &file]);
    let changed = Some("1 call was already made: s.send".into());
    let error = Some(RunError { changed, ..RunError::new("ValueError", "no") });
    assert_eq!(
        blocks(run(RunAnswer { status: RunStatus::Error, error, ..beside }), AnswerForm::Value),
        ["ValueError: no\nchanged: 1 call was already made: s.send", "\none\n", &file]
    );
    assert_eq!(blocks(running(), AnswerForm::Value), blocks(running(), AnswerForm::Text));
}

#[test]
fn an_error_has_no_more_than_its_execution_in_meta() {
    let result = serde_json::to_value(run(failed()).into_result(AnswerForm::Text, "get_result"));
    let result = result.expect("a result");
    assert_eq!(result["_meta"], json!({META_KEY: {"execution": EXECUTION.to_string()}}));
    let refused = ToolAnswer::invalid_request("cancelled").into_result(AnswerForm::Text, "get_result");
    assert!(refused.meta.is_none(), "{refused:?}");
}

#[test]
fn sentences_stand_in_place_of_whole_values() {
    assert_snapshot!(text(run(cut())), @r#"
    Value cut: 327,800 bytes, of which 10,157 are shown; get_result("5700d3a91e405700d3a91e405700d3a9") reads it in parts, load_result("5700d3a91e405700d3a91e405700d3a9") gives code all of it.
    [1,"… 9,998 more items, [1] to [9998] …",3]
    "#);
    assert_snapshot!(text(run(failed())), @r"
    ToolError(denied): the policy does not allow it (line 4)
        delete(1)
    hint: ask a user
    changed: 1 call was already made: a.b (line 1)
    ---
    page 1
    ");
    assert_snapshot!(text(running()), @r#"
    Still running (45.0 s, 12 calls made, waiting for github.list_issues ×3). get_result("5700d3a91e405700d3a91e405700d3a9") waits for the answer; do not run it again.
    ---
    Output so far ends with:
    page 2
    "#);
    assert_snapshot!(text(run(empty())), @"No value: end with an expression.");
    assert_snapshot!(text(run(RunAnswer { stdout: printed("1\n"), ..empty() })), @r"
    No value, only printed output.
    ---
    1
    ");
    assert_snapshot!(text(ToolAnswer::invalid_request("cancelled")), @"InvalidRequest: cancelled");
}

#[test]
fn a_part_names_its_position_and_a_whole_list_is_json() {
    let list = |offset: u64, next: Option<u64>| {
        let mut json = json!({"value": [7, 8], "offset": offset, "of": if next.is_none() && offset == 0 { 2 } else { 10_000 }, "unit": "items"});
        if let Some(next) = next {
            json["next_offset"] = next.into();
        }
        text(part(json))
    };
    assert_eq!(list(0, None), "[7,8]");
    assert_snapshot!(list(183, Some(185)), @r#"
    Part of the value: items 183 to 184 of 10,000; get_result("5700d3a91e405700d3a91e405700d3a9", offset=185) reads on.
    [7,8]
    "#);
    assert_snapshot!(list(9_998, None), @r"
    Part of the value: items 9998 to 9999 of 10,000; this is the last part.
    [7,8]
    ");
    let characters = json!({"value": "{\"a\":1}", "offset": 0, "of": 7, "unit": "characters"});
    assert_snapshot!(text(part(characters)), @r#"
    Part of the value: characters 0 to 6 of 7; this is the last part.
    {"a":1}
    "#);
}

#[test]
fn only_a_whole_value_parses_as_json() {
    let answers = || {
        let stopped = RunAnswer {
            status: RunStatus::Timeout,
            error: Some(RunError::new("TimeoutError", "")),
            ..with_value(&json!(1))
        };
        [
            run(cut()),
            run(failed()),
            run(empty()),
            run(stopped),
            running(),
            part(json!({"value": "12", "offset": 0, "of": 2, "unit": "characters"})),
            part(json!({"value": [1], "offset": 0, "of": 1, "unit": "items", "cut": [{"path": "$"}]})),
        ]
    };
    for form in [AnswerForm::Text, AnswerForm::Value] {
        for answer in answers() {
            let first = blocks(answer, form).remove(0);
            assert!(serde_json::from_str::<Value>(&first).is_err(), "{first}");
        }
    }
}

#[test]
fn files_follow_the_first_block_and_the_rest_is_in_meta() {
    let file = ResultFile {
        content: Some(b"a".to_vec()),
        mime_type: "image/png".into(),
        name: None,
        bytes: 1,
        handle: None,
    };
    for (form, blocks, with_output) in [(AnswerForm::Text, 3, false), (AnswerForm::Value, 2, true)] {
        let mut run = RunAnswer { stdout: printed("x"), ..with_value(&json!({"content": 1})) };
        run.usage = Some(RunUsage::default());
        run.usage.as_mut().expect("usage").stats.wall_ms = Some(1.5);
        let answer = with_files(run, vec![file.clone()]);
        let result = serde_json::to_value(answer.into_result(form, "get_result")).expect("a result");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(blocks), "{result}");
        assert_eq!(
            result["content"][1],
            json!({"type": "image", "data": "YQ==", "mimeType": "image/png"}),
            "{result}"
        );
        let meta = &result["_meta"][META_KEY];
        assert_eq!(
            (&meta["execution"], &meta["stats"]["wall_ms"]),
            (&json!(EXECUTION.to_string()), &json!(1.5)),
            "{result}"
        );
        assert_eq!((meta.get("value"), meta.get("stdout").is_some()), (None, with_output), "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
    }
}

#[test]
fn the_structured_form_has_the_whole_answer_twice_and_a_cut_value_as_preview() {
    for answer in [cut(), failed()] {
        let result = serde_json::to_value(run(answer).into_result(AnswerForm::Structured, "get_result"))
            .expect("a result");
        let parsed: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
        assert_eq!(parsed, result["structuredContent"]);
        assert!(parsed.get("value").is_none(), "{parsed}");
        assert_eq!(parsed.get("preview").is_some(), parsed["status"] == "ok", "{parsed}");
    }
}

#[test]
fn a_search_is_lines() {
    let search = |json: Value| text(ToolAnswer::Search(json));
    let found = json!({
        "tools": [
            {"server": "github", "tool": "list_issues", "summary": "List issues.\nOf a repository", "python": "list_issues(owner: str)"},
            {"server": "github", "tool": "merge", "summary": "Merge", "ask": true, "python": "merge(id: int)  # asks a person"},
            {"server": "files", "tool": "read", "summary": "", "typescript": "read({ path: string })"},
        ],
        "skills": [{
            "import": "import { report } from \"skills/report\";", "signature": "report(week: number)",
            "description": "Weekly\nreport", "language": "typescript",
        }],
        "left_out": {"github": 12, "mail": 1},
        "unavailable": ["slow: connecting", "broken: exit status 1: no", "idle: connecting"],
    });
    assert_snapshot!(search(found), @r#"
    github.list_issues(owner: str)  # List issues. Of a repository
    github.merge(id: int)  # asks a person; Merge
    files.read({ path: string })
    import { report } from "skills/report"; report(week: number)  // a saved skill: Weekly report
    More matches: github 12, mail 1; raise limit, or add server:NAME
    Not searched: slow, idle: connecting; broken: exit status 1: no
    "#);
    assert_snapshot!(search(json!({"tools": [{"server": "a", "tool": "b", "summary": "c"}]})), @"a.b");
    assert_snapshot!(search(json!({"tools": [], "available": {"a": 12, "b": 3}})), @"No match among 15 tools: a 12, b 3. The query server:NAME lists the tools of one server.");
    assert_snapshot!(search(json!({"tools": []})), @"No match: there are no tools.");
    let full = json!({"tools": [{"server": "a", "name": "b", "inputSchema": {}}]});
    assert_eq!(search(full.clone()), full.to_string());
}
