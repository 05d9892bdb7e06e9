//! Tests of shared skill directories, such as a git checkout or the directory of a team: their skills can be imported
//! besides the user's own.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

use crate::skills::{SKILLS_POLICY, folder, giving, saving, using};

#[test]
fn own_skills_take_precedence_over_shared_directories_in_order() {
    let config = "[skills]\ndirectories = [\"../../one\", \"../../two\", \"../../nowhere\"]\n";
    let lockhouse = Lockhouse::new().policy(SKILLS_POLICY).config(config);
    folder(&lockhouse, "one", "both", "def both(): return 1");
    folder(&lockhouse, "two", "both", "def both(): return 2");
    folder(&lockhouse, "two", "second", "def second(): return 2");
    // A skill of another program, without code.
    lockhouse
        .file("two/words/SKILL.md", "---\nname: words\ndescription: Words for a model.\n---\nWrite well.\n");
    lockhouse.file("two/.git/config", "");
    lockhouse.file("two/README.md", "");
    let mut table = Table::new("shared skills");
    let value = |name: &str| lockhouse.answer("python", &using("python", name))["value"].clone();
    table.row("the first directory", equal(value("both"), json!(1)));
    table.row("the second", equal(value("second"), json!(2)));
    let found = lockhouse.answer("python", "import skills\n[row['name'] for row in skills.search('shared')]");
    table.row("each is found once", equal(&found["value"], &json!(["both", "second"])));
    let words = lockhouse.answer("python", "import skills.words");
    let told = words["error"]["message"].as_str().unwrap_or_default();
    table.row("a skill without code", ensure(told.contains("it has no skill.py and no skill.ts"), &words));
    let before = std::fs::read_to_string(lockhouse.path("one/both/skill.py")).unwrap();
    let saved = lockhouse.answer("python", &saving("python", "both", &giving("python", "both", "3")));
    table.row("saving under that name", equal(&saved["value"]["state"], &json!("saved")));
    table.row("our own counts now", equal(value("both"), json!(3)));
    let after = std::fs::read_to_string(lockhouse.path("one/both/skill.py")).unwrap();
    table.row("nothing is written to a directory that is shared", equal(after, before));
    let listed = lockhouse.run(&["skills", "list", "--json"]).json();
    let states: Vec<(&str, &str)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["state"].as_str().unwrap()))
        .collect();
    let expected = vec![
        ("both", "ready"),
        ("both", "hidden by another"),
        ("both", "hidden by another"),
        ("second", "ready"),
        ("words", "not importable"),
    ];
    table.row("all are listed", equal(states, expected));
    let removed = lockhouse.run(&["skills", "remove", "both", "--yes"]);
    table.row("removing ours", ensure(removed.stdout.contains("now gets the skill that is shared"), removed));
    table.row("the shared one counts again", equal(value("both"), json!(1)));
    // Simulates the pull of a commit.
    folder(&lockhouse, "one", "both", "def both(): return 9");
    table.row("what changes in a directory counts at once", equal(value("both"), json!(9)));
    table.finish();
}
