//! Tests of calling saved skills by name, with `skills.run` in a program and with `lockhouse skills run`.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::skills::{giving, lockhouse, saving};

const PYTHON: &str = "\
def helper(text):
    return text * 2


def weekly_report(owner: str, days: int = 1, **more):
    return [helper(owner), days, more]
";

const TYPESCRIPT: &str = "\
const helper = (text: string) => text + text;
export async function monthlyReport(owner: string, options: { days?: number } = {}) {
  return [helper(owner), options.days ?? 1];
}
";

fn save(lockhouse: &Lockhouse, language: &str, name: &str, code: &str) {
    let answer = lockhouse.answer(language, &saving(language, name, code));
    assert_eq!(answer["value"]["state"], "saved", "{answer}");
}

/// Returns a Lockhouse test fixture with saved skills in both languages: one function named like its skill,
/// one named differently, and several functions in one skill.
fn with_skills() -> Lockhouse {
    let lockhouse = lockhouse();
    save(&lockhouse, "python", "weekly_report", PYTHON);
    save(&lockhouse, "typescript", "monthly_report", TYPESCRIPT);
    save(&lockhouse, "python", "other", &giving("python", "f", "7"));
    save(&lockhouse, "python", "several", "def f(): pass\ndef g(): pass\n");
    save(&lockhouse, "typescript", "several_ts", "export const f = () => 1;\nexport const g = () => 2;\n");
    lockhouse
}

#[test]
fn a_program_calls_a_skill_by_its_name() {
    let lockhouse = with_skills();
    let mut table = Table::new("skills.run");
    for (language, code, expected) in [
        ("python", "import skills\nskills.run('weekly_report', 'a', days=2)", json!(["aa", 2, {}])),
        ("python", "skills.run('weekly-report', owner='a', other=1)", json!(["aa", 1, {"other": 1}])),
        ("python", "from skills import run\nrun('weeklyReport', 'b')", json!(["bb", 1, {}])),
        ("python", "skills.run('other')", json!(7)),
        ("typescript", "await skills.run('monthly_report', 'a', { days: 2 })", json!(["aa", 2])),
        ("typescript", "import { run } from 'skills'; await run('monthlyReport', 'b')", json!(["bb", 1])),
    ] {
        let answer = lockhouse.answer(language, code);
        table.row(
            format!("{language}: {code}"),
            equal(&answer["value"], &expected).map_err(|e| format!("{e} {}", answer["error"])),
        );
    }
    for (language, code, says) in [
        ("python", "skills.run('nothing')", "no skill nothing"),
        ("python", "skills.run('several')", "import one of its functions: f, g"),
        ("python", "skills.run('monthly_report')", "is written in typescript"),
        ("typescript", "await skills.run('several_ts')", "import one of its functions: f, g"),
    ] {
        let answer = lockhouse.answer(language, code);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {code}"), ensure(message.contains(says), &answer));
    }
    table.finish();
}

#[test]
fn the_command_calls_a_skill_with_arguments() {
    let lockhouse = with_skills();
    let mut table = Table::new("lockhouse skills run");
    let run = |arguments: &[&str]| lockhouse.run(&[&["skills", "run"], arguments].concat());
    for (arguments, expected) in [
        (&["weekly_report", "--arg", "owner=a", "--arg", "days=3"][..], json!(["aa", 3, {}])),
        (&["weekly-report", "--arg", "\"a=\\\"é\\\"\""], json!(["a=\"é\"a=\"é\"", 1, {}])),
        (
            &["weekly_report", "--arg", "owner=a", "--arg", "list=[1, {\"x\": null}]"],
            json!(["aa", 1, {"list": [1, {"x": null}]}]),
        ),
        (&["monthly_report", "--arg", "\"a\"", "--arg", "days=3"], json!(["aa", 3])),
        (&["other"], json!(7)),
    ] {
        let ended = run(&[arguments, &["--json"]].concat());
        let value = ended.json()["value"].clone();
        let outcome = equal((ended.status, value), (Some(0), expected)).map_err(|e| format!("{e} {ended:?}"));
        table.row(arguments.join(" "), outcome);
    }
    let printed = run(&["other"]);
    table.row("for people", equal(printed.stdout.trim(), "7"));
    for (arguments, status, says) in [
        (&["nothing"][..], 2, "there is no skill nothing"),
        (&["other", "--arg", "acme"], 2, "give NAME=VALUE, or JSON"),
        (&["other", "--client", "ada"], 2, "not those of --client"),
        (&["other", "--arg", "1"], 1, "takes 0 positional arguments"),
    ] {
        let ended = run(arguments);
        table.row(
            arguments.join(" "),
            ensure(ended.status == Some(status) && ended.stderr.contains(says), &ended),
        );
    }
    let reserved = lockhouse.answer("python", &saving("python", "run", &giving("python", "run", "1")));
    table.row(
        "the name is reserved",
        ensure(reserved["status"] == "error", Value::from(reserved.to_string())),
    );
    table.finish();
}

#[tokio::test]
async fn a_search_for_tools_finds_the_skills_of_its_language() {
    let lockhouse = lockhouse();
    save(&lockhouse, "python", "weekly_report", PYTHON);
    save(&lockhouse, "typescript", "monthly_report", TYPESCRIPT);
    let session = lockhouse.serve().await;
    let mut table = Table::new("skills in a search for tools");
    let python = "from skills.weekly_report import weekly_report";
    let typescript = "import { monthlyReport } from \"skills/monthly_report\";";
    for (query, language, expected) in [
        ("report", Some("python"), Some(python)),
        ("report", None, Some(python)),
        ("report", Some("typescript"), Some(typescript)),
        ("monthly report", Some("python"), Some(python)),
        ("server:fixture report", Some("python"), None),
        ("zebra", Some("python"), None),
    ] {
        let mut arguments = json!({"query": query});
        if let Some(language) = language {
            arguments["language"] = language.into();
        }
        let found = lockhouse_tests::structured(session.call("search_tools", arguments).await);
        let skills = found["skills"].as_array().cloned().unwrap_or_default();
        let imports: Vec<&str> = skills.iter().filter_map(|skill| skill["import"].as_str()).collect();
        table.row(format!("{query}, {language:?}"), equal(imports, Vec::from_iter(expected)));
    }
    table.finish();
}
