//! Tests of the conversion of answers: what a model reads in each form, and what a program can parse.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

const HANDLE: &str = "5700d3a91e405700d3a91e405700d3a9";

fn run(json: Value) -> Answer {
    Answer { is_error: json.get("error").is_some(), ..Answer::new(AnswerKind::Run, json) }
}

fn part(json: Value) -> Answer {
    Answer::new(AnswerKind::Part(ResultHandle::new(HANDLE).expect("a handle")), json)
}

/// Returns the text blocks of an answer.
fn blocks(answer: Answer, form: AnswerForm) -> Vec<String> {
    let content = answer.into_result(form, "get_result").content;
    content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect()
}

fn text(answer: Answer) -> String {
    blocks(answer, AnswerForm::Text).join("\n---")
}

fn cut() -> Value {
    json!({
        "execution": "0199", "status": "ok", "value": [1, "… 9,998 more items, [1] to [9998] …", 3],
        "truncated": {"value": {"bytes": 327_800, "shown": 10_157, "handle": HANDLE}, "hint": "next part"}, "calls": [],
    })
}

fn failed() -> Value {
    json!({
        "status": "error", "stdout": "page 1\n",
        "error": {
            "type": "ToolError", "code": "denied", "message": "the policy does not allow it", "line": 4, "column": 9,
            "traceback": "Traceback (most recent call last):\n  File \"<code>\", line 9, in <module>\n    main()\n  File \"<code>\", line 4, in main\n    delete(1)\n    ^^^^\nToolError",
            "hint": "ask a user", "changed": "1 call was already made: a.b (line 1)",
        },
        "calls": [{"server": "a", "tool": "b", "outcome": "ok", "changes": true}],
    })
}

fn running() -> Value {
    json!({
        "execution": "0199", "status": "running", "handle": HANDLE,
        "progress": {"elapsed_s": 45.04, "calls": 12, "under_way": {"github.list_issues": 3}, "stdout_tail": "page 2\n"},
    })
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
            let answer = run(json!({"execution": "0199", "status": "ok", "value": value, "calls": []}));
            assert_eq!(blocks(answer, form), [expected]);
        }
    }
}

#[test]
fn output_and_calls_with_effects_have_blocks_of_their_own() {
    let call = |tool: &str, outcome: &str, changes: bool| json!({"server": "s", "tool": tool, "outcome": outcome, "changes": changes});
    let answer = || {
        run(json!({
            "status": "ok", "value": 1, "stdout": "one\n", "stderr": "two\n",
            "calls": [
                call("write", "ok", true), call("read", "ok", false), call("write", "ok", true),
                call("send", "timeout", true), call("drop", "denied", true), call("move", "tool_failed", true),
            ],
        }))
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
    let calls: Vec<Value> = (0..30)
        .map(|number| json!({"server": "s", "tool": format!("t{number}"), "outcome": "ok", "changes": true, "count": 2}))
        .collect();
    let line = text(run(json!({"status": "ok", "value": 1, "calls": calls})));
    assert_eq!(line, "1\n---\nMay have changed something: s.t0 ×2, s.t1 ×2, s.t2 ×2, 27 more tools");
    let after = |tools: &[(&str, &str)]| {
        let call = |(tool, outcome): &(&str, &str)| json!({"server": "s", "tool": tool, "outcome": outcome, "changes": true});
        let calls: Vec<Value> = tools.iter().map(call).collect();
        text(run(json!({"status": "ok", "value": 1, "calls": calls})))
            .rsplit_once("something: ")
            .map(|(_, names)| names.to_owned())
    };
    let (failed, unknown) = ("tool_failed", "timeout");
    for (tools, expected) in [
        (vec![("a", "ok"), ("b", "ok"), ("c", "ok"), ("d", "ok")], "s.a, s.b, s.c, 1 more tool"),
        (vec![("a", "ok"), ("b", "ok"), ("c", "ok"), ("d", failed)], "s.a, s.b, 1 more tool; failed: s.d"),
        (
            vec![("a", "ok"), ("b", "ok"), ("c", failed), ("d", failed), ("e", unknown), ("f", unknown)],
            "s.a, 1 more tool; failed: s.c, 1 more tool; outcome unknown: s.e, 1 more tool",
        ),
        (vec![("a", "ok"), ("b", unknown), ("c", unknown)], "s.a; outcome unknown: s.b, s.c"),
    ] {
        assert_eq!(after(&tools).as_deref(), Some(expected), "{tools:?}");
    }
}

#[test]
fn calls_that_likely_read_are_not_listed_after_a_success() {
    let call = |tool: &str, likely_read: bool| json!({"server": "s", "tool": tool, "outcome": "ok", "changes": true, "likely_read": likely_read});
    let after = |calls: Vec<Value>| text(run(json!({"status": "ok", "value": 1, "calls": calls})));
    assert_eq!(
        after(vec![call("list", true), call("send", false)]),
        "1\n---\nMay have changed something: s.send"
    );
    assert_eq!(after(vec![call("list", true)]), "1");
}

#[test]
fn the_form_value_has_output_changes_and_files_where_there_is_no_whole_value() {
    let changed = json!([{"server": "s", "tool": "send", "outcome": "ok", "changes": true}]);
    let files = json!([{"name": "a.csv", "bytes": 1200, "handle": HANDLE, "expires_s": 3600, "ends_with_client": true}]);
    let beside = json!({"status": "ok", "stdout": "one\n", "calls": changed, "files": files});
    let with = |name: &str, value: Value| {
        let mut json = beside.clone();
        json[name] = value;
        run(json)
    };
    let file = format!(
        "\nFiles: a.csv (1,200 bytes, handle {HANDLE}). `lockhouse result HANDLE --out DIR` saves one until this client \
         disconnects, at most 60 min."
    );
    let changes = "\nMay have changed something: s.send";
    assert_eq!(
        blocks(run(beside.clone()), AnswerForm::Value),
        ["No value, only printed output.", "\none\n", changes, &file]
    );
    assert_eq!(blocks(with("value", json!(1)), AnswerForm::Value), ["1"]);
    assert_eq!(blocks(with("value", json!(1)), AnswerForm::Text), ["1", "\none\n", changes, &file]);
    let error = json!({"type": "ValueError", "message": "no", "changed": "1 call was already made: s.send"});
    assert_eq!(
        blocks(with("error", error), AnswerForm::Value),
        ["ValueError: no\nchanged: 1 call was already made: s.send", "\none\n", &file]
    );
    assert_eq!(
        blocks(Answer::new(AnswerKind::Running, running()), AnswerForm::Value),
        blocks(Answer::new(AnswerKind::Running, running()), AnswerForm::Text)
    );
}

#[test]
fn an_error_has_no_more_than_its_execution_in_meta() {
    let mut json = failed();
    json["execution"] = "0199".into();
    let result =
        serde_json::to_value(run(json).into_result(AnswerForm::Text, "get_result")).expect("a result");
    assert_eq!(result["_meta"], json!({META_KEY: {"execution": "0199"}}));
    let refused = Answer::invalid_request("cancelled").into_result(AnswerForm::Text, "get_result");
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
    assert_snapshot!(text(Answer::new(AnswerKind::Running, running())), @r#"
    Still running (45.0 s, 12 calls made, waiting for github.list_issues ×3). get_result("5700d3a91e405700d3a91e405700d3a9") waits for the answer; do not run it again.
    ---
    Output so far ends with:
    page 2
    "#);
    assert_snapshot!(text(run(json!({"status": "ok", "calls": []}))), @"No value: end with an expression.");
    assert_snapshot!(text(run(json!({"status": "ok", "stdout": "1\n", "calls": []}))), @r"
    No value, only printed output.
    ---
    1
    ");
    assert_snapshot!(text(Answer::invalid_request("cancelled")), @"InvalidRequest: cancelled");
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
        [
            run(cut()),
            run(failed()),
            run(json!({"status": "ok"})),
            run(json!({"status": "timeout", "error": {"type": "TimeoutError"}, "value": 1})),
            Answer::new(AnswerKind::Running, running()),
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
    let file = ContentBlock::image("YQ==", "image/png");
    let json = json!({
        "execution": "0199", "status": "ok", "value": {"content": 1}, "stdout": "x", "calls": [], "stats": {"wall_ms": 1},
        "sandbox": {"level": "full"},
    });
    for (form, blocks, with_output) in [(AnswerForm::Text, 3, false), (AnswerForm::Value, 2, true)] {
        let answer = Answer { files: vec![file.clone()], ..run(json.clone()) };
        let result = serde_json::to_value(answer.into_result(form, "get_result")).expect("a result");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(blocks), "{result}");
        assert_eq!(result["content"][1]["type"], "image", "{result}");
        let meta = &result["_meta"][META_KEY];
        assert_eq!((&meta["execution"], &meta["stats"]["wall_ms"]), (&json!("0199"), &json!(1)), "{result}");
        assert_eq!((meta.get("value"), meta.get("stdout").is_some()), (None, with_output), "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
    }
}

#[test]
fn the_structured_form_has_the_whole_answer_twice_and_a_cut_value_as_preview() {
    for json in [cut(), failed()] {
        let result = serde_json::to_value(run(json).into_result(AnswerForm::Structured, "get_result"))
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
    let search = |json: Value| text(Answer::new(AnswerKind::Search, json));
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
