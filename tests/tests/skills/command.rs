//! Tests of `lockhouse skills`, the command with which a user manages saved skills.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::skills::{OWN_STORE, folder, giving, lockhouse, saving, using};

fn save(lockhouse: &Lockhouse, language: &str, name: &str, value: &str) {
    let answer = lockhouse.answer(language, &saving(language, name, &giving(language, name, value)));
    assert_eq!(answer["value"]["state"], "saved", "{answer}");
}

#[test]
fn versions_can_be_listed_shown_and_removed() {
    let lockhouse = lockhouse();
    for value in ["1", "2", "3"] {
        save(&lockhouse, "python", "mine", value);
    }
    save(&lockhouse, "typescript", "yours", "4");
    let shown = |arguments: &[&str]| lockhouse.run(&[&["skills"], arguments].concat());
    let json = |arguments: &[&str]| shown(&[arguments, &["--json"]].concat()).json();
    let mut table = Table::new("lockhouse skills");
    let listed = json(&["list"]);
    let rows: Vec<Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["name"], row["version"], row["language"], row["state"], row["from"]]))
        .collect();
    let expected =
        vec![json!(["mine", 3, "python", "ready", "own"]), json!(["yours", 1, "typescript", "ready", "own"])];
    table.row("list", equal(rows, expected));
    let text = shown(&["list"]).stdout;
    table.row(
        "list, for people",
        ensure(text.contains("mine   3        python      ready  own   A skill."), text),
    );
    table.row("show", equal(&json(&["show", "mine"])["code"], &json!("def mine():\n    return 3\n")));
    table.row("older versions", equal(&json(&["show", "mine"])["older_versions"], &json!([1, 2])));
    table.row(
        "show an older one",
        equal(&json(&["show", "mine", "--version", "1"])["code"], &json!("def mine():\n    return 1\n")),
    );
    let text = shown(&["show", "mine"]).stdout;
    let holds = text.contains("from skills.mine import mine")
        && text.contains("    return 3")
        && text.contains("older        1, 2");
    table.row("show, for people", ensure(holds, text));
    for (arguments, told) in [
        (&["show", "mime"][..], "did you mean mine?"),
        (&["show", "mine", "--version", "9"], "stored older versions: 1, 2"),
        (&["show", "../x"], "is no name for a skill"),
        (&["approve", "mine", "--yes"], "mine has no draft; its current version is 3"),
        (&["approve", "zzz", "--yes"], "there is no skill zzz"),
        (&["remove", "zzz", "--yes"], "there is no skill zzz"),
        (&["test", "zzz"], "there is no skill zzz"),
        (&["export", "zzz", "--out", "x"], "there is no skill zzz"),
    ] {
        let refused = shown(arguments);
        table.row(
            arguments.join(" "),
            ensure(refused.status == Some(2) && refused.stderr.contains(told), &refused),
        );
    }
    let unasked = shown(&["remove", "mine"]);
    table.row(
        "nothing is removed without a word",
        ensure(unasked.stderr.contains("--yes") && lockhouse.path(OWN_STORE).join("mine").exists(), unasked),
    );
    table.row("remove", equal(shown(&["remove", "mine", "--yes"]).status, Some(0)));
    table.row("it is gone", equal(lockhouse.path(OWN_STORE).join("mine").exists(), false));
    let used = lockhouse.answer("python", &using("python", "mine"));
    table.row("and cannot be imported", ensure(used["status"] == "error", used));
    table.finish();
}

#[test]
fn tests_of_skills_run_like_programs() {
    let lockhouse = lockhouse();
    for (language, name, tests) in [
        ("python", "good", "from skills.good import good\nassert good() == 1"),
        ("python", "bad", "from skills.bad import bad\n\nassert bad() == 2, 'it is not two'"),
        (
            "typescript",
            "fine",
            "import { fine } from 'skills/fine';\nif (fine() !== 1) throw new Error('no')",
        ),
        (
            "typescript",
            "wrong",
            "import { wrong } from 'skills/wrong';\nif (wrong() !== 2) throw new Error('it is not two')",
        ),
        ("python", "reaches", "open('/etc/passwd')"),
    ] {
        let code = Value::from(giving(language, name, "1"));
        let tests = Value::from(tests);
        let program = match language {
            "python" => format!("import skills\nskills.save('{name}', 'd', code={code}, tests={tests})"),
            _ => format!(
                "await skills.save({{name: '{name}', description: 'd', code: {code}, tests: {tests}}})"
            ),
        };
        let answer = lockhouse.answer(language, &program);
        assert_eq!(answer["value"]["state"], "saved", "{answer}");
    }
    save(&lockhouse, "python", "untested", "1");
    let mut table = Table::new("lockhouse skills test");
    let all = lockhouse.run(&["skills", "test", "--json"]);
    table.row("all: the exit status", equal(all.status, Some(1)));
    let rows = all.json();
    let outcome = |name: &str| {
        let row =
            rows.as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap_or_default();
        (
            row["outcome"].as_str().unwrap_or_default().to_owned(),
            row["error"].as_str().unwrap_or_default().to_owned(),
        )
    };
    for (name, expected, told) in [
        ("good", "pass", ""),
        ("bad", "FAIL", "AssertionError (line 3): it is not two"),
        ("fine", "pass", ""),
        ("wrong", "FAIL", "Error (line 2): it is not two"),
        ("reaches", "FAIL", "not available in the Lockhouse sandbox"),
        ("untested", "no tests", ""),
    ] {
        let (found, error) = outcome(name);
        table.row(name, ensure(found == expected && error.contains(told), (found, error)));
    }
    table.row("some", equal(lockhouse.run(&["skills", "test", "good", "fine", "untested"]).status, Some(0)));
    let text = lockhouse.run(&["skills", "test", "bad"]).stdout;
    table.row("for people", ensure(text.contains("bad   1        FAIL   AssertionError (line 3)"), text));
    table.finish();
}

#[test]
fn an_exported_skill_works_as_a_shared_skill() {
    let ours = lockhouse();
    save(&ours, "python", "mine", "5");
    let out = ours.path("out");
    let exported = ours.run(&["skills", "export", "mine", "--out", out.to_str().unwrap()]);
    assert_eq!(exported.status, Some(0), "{exported:?}");
    let again = ours.run(&["skills", "export", "mine", "--out", out.to_str().unwrap()]);
    assert!(again.status == Some(2) && again.stderr.contains("File exists"), "{again:?}");
    let theirs = Lockhouse::new().config(&format!("[skills]\ndirectories = [\"{}\"]\n", out.display()));
    let used = theirs.answer("python", &using("python", "mine"));
    assert_eq!(used["value"], 5, "{used}");
    let refused = theirs.run(&["skills", "remove", "mine", "--yes"]);
    assert!(refused.stderr.contains("is shared from"), "{refused:?}");
}

#[test]
fn skills_can_be_disabled() {
    let off = Lockhouse::new().config("[skills]\nenabled = false\n");
    folder(&off, OWN_STORE, "mine", "def mine(): return 1");
    let mut table = Table::new("enabled = false");
    for program in
        [using("python", "mine"), saving("python", "mine", "x = 1"), "import skills\nskills.list()".into()]
    {
        let answer = off.answer("python", &program);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(program.clone(), ensure(message.contains("turned off"), &answer));
    }
    let on = Lockhouse::new();
    folder(&on, OWN_STORE, "mine", "def mine(): return 1");
    table.row("control", equal(&on.answer("python", &using("python", "mine"))["value"], &json!(1)));
    let server = Lockhouse::new().server("skills", &[]);
    let answer = server.answer("python", "from mcp_tools import list_servers\nlen(list_servers())");
    table.row("no server has the name", equal(&answer["value"], &json!(0)));
    let told = server.run(&["run", "-c", "1", "--language", "python"]).stderr;
    table.row("and it is told", ensure(told.contains("the name skills is reserved for saved skills"), told));
    table.finish();
}
