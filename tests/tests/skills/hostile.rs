//! Tests of malicious skill folders, and of malicious programs that save or import skills.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::skills::{OWN_STORE, SKILLS_POLICY, folder, giving, saving, using};

const SHARED: &str = "[skills]\ndirectories = [\"../../shared\"]\n";

fn lockhouse() -> Lockhouse {
    Lockhouse::new().policy(SKILLS_POLICY).config(SHARED)
}

fn unavailable_reason(lockhouse: &Lockhouse, name: &str) -> Value {
    let listed = lockhouse.run(&["skills", "list", "--json"]).json();
    listed.as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn an_invalid_skill_folder_is_refused_with_a_reason() {
    let mut table = Table::new("hostile folders");
    let document = |front: &str| format!("---\n{front}\n---\n");
    let good = document("name: bad\ndescription: d");
    let anchors = document("name: bad\ndescription: &a d\nx: [*a, *a]");
    let deep = document(&format!("name: bad\ndescription: d\nx: {}", "[".repeat(9_000)));
    let many = document(&format!("name: bad\ndescription: d\nx: [{}]", "a, ".repeat(9_000)));
    let huge = document(&format!("name: bad\ndescription: d\nx: {}", "a".repeat(300_000)));
    let long = document(&format!("name: bad\ndescription: {}", "d".repeat(5_000)));
    let hidden = document("name: bad\ndescription: \"d\\u202e\"");
    let other = document("name: other\ndescription: d");
    for (name, document, why) in [
        ("control", good.as_str(), None),
        ("an alias", &anchors, Some("anchor")),
        ("deep nesting", &deep, Some("")),
        ("too many values", &many, Some("more than 2000 parts")),
        ("a huge document", &huge, Some("more than 262144 bytes")),
        ("a long description", &long, Some("the limit is 1024")),
        ("a hidden character", &hidden, Some("hidden character")),
        ("another name", &other, Some("its name is not bad")),
        ("no front matter", "# bad\n", Some("does not begin with a line ---")),
        ("no YAML", "---\nname: a: b: c\n---\n", Some("not YAML")),
        ("no description", "---\nname: bad\n---\n", Some("the description is empty")),
        ("nothing", "", Some("does not begin")),
    ] {
        let lockhouse = lockhouse();
        folder(&lockhouse, "shared", "bad", "def bad(): return 1");
        lockhouse.file("shared/bad/SKILL.md", document);
        let used = lockhouse.answer("python", &using("python", "bad"));
        let row = unavailable_reason(&lockhouse, "bad");
        let holds = match why {
            None => used["value"] == 1 && row["state"] == "ready",
            Some(why) => {
                let told = row["reason"].as_str().unwrap_or_default();
                used["status"] == "error" && row["state"] == "not importable" && told.contains(why)
            }
        };
        table.row(name, ensure(holds, (row, used)));
    }
    table.finish();
}

#[test]
fn symbolic_links_and_pipes_are_not_followed() {
    let mut table = Table::new("symbolic links out of the folder");
    for name in ["control", "the code", "the document", "the folder", "a pipe", "too large", "no UTF-8"] {
        let lockhouse = lockhouse();
        folder(&lockhouse, "shared", "bad", "def bad(): return 1");
        folder(&lockhouse, "elsewhere", "bad", "def bad(): return 2");
        let (here, there) = (lockhouse.path("shared/bad"), lockhouse.path("elsewhere/bad"));
        match name {
            "the code" => {
                std::fs::remove_file(here.join("skill.py")).unwrap();
                symlink(there.join("skill.py"), here.join("skill.py")).unwrap();
            }
            "the document" => {
                std::fs::remove_file(here.join("SKILL.md")).unwrap();
                symlink(there.join("SKILL.md"), here.join("SKILL.md")).unwrap();
            }
            "the folder" => {
                std::fs::remove_dir_all(&here).unwrap();
                symlink(&there, &here).unwrap();
            }
            "a pipe" => {
                std::fs::remove_file(here.join("skill.py")).unwrap();
                nix::unistd::mkfifo(&here.join("skill.py"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            }
            "too large" => std::fs::write(here.join("skill.py"), "#".repeat(300_000)).unwrap(),
            "no UTF-8" => std::fs::write(here.join("skill.py"), [0xff, 0xfe]).unwrap(),
            _ => {}
        }
        let used = lockhouse.answer("python", &using("python", "bad"));
        let holds = if name == "control" { used["value"] == 1 } else { used["status"] == "error" };
        table.row(name, ensure(holds, (&used, unavailable_reason(&lockhouse, "bad"))));
    }
    table.finish();
}

#[test]
fn a_skill_has_only_the_permissions_of_the_importing_program() {
    let mut table = Table::new("grants of a skill");
    let bodies = [
        ("python", "def mine():\n    from mcp_tools.fixture import add\n    return add(a=1, b=2)['sum']\n"),
        (
            "typescript",
            "import { add } from \"mcp_tools/fixture\";\nexport const mine = async () => (await add(1, 2)).sum;\n",
        ),
    ];
    for (language, code) in bodies {
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(SKILLS_POLICY);
        let saved = lockhouse.answer(language, &saving(language, "mine", code));
        assert_eq!(saved["value"]["state"], "saved", "{saved}");
        let run = |arguments: &[&str]| {
            let run = [&["run", "-", "--language", language, "--json"], arguments].concat();
            lockhouse.run_with_input(&run, using(language, "mine").as_bytes()).json()
        };
        let control = run(&[]);
        table.row(
            format!("{language}: control"),
            equal(&control["value"], &json!(3)).map_err(|why| format!("{why} {control}")),
        );
        let narrowed = run(&["--server", "fixture.count"]);
        table.row(
            format!("{language}: started with less"),
            equal(&narrowed["error"]["code"], &json!("denied")),
        );
        let strict = lockhouse.file("strict.toml", "version = 1\n[servers.fixture]\nallow = [\"count\"]\n");
        let denied = run(&["--policy", strict.to_str().unwrap()]);
        table.row(
            format!("{language}: under a stricter policy"),
            equal(&denied["error"]["code"], &json!("denied")),
        );
        let line = control["calls"][0]["tool"].as_str().unwrap_or_default();
        table.row(format!("{language}: its calls are the program's"), equal(line, "add"));
    }
    let lockhouse = lockhouse();
    let code = "def mine():\n    return open('/etc/passwd').read()\n";
    assert_eq!(lockhouse.answer("python", &saving("python", "mine", code))["status"], "ok");
    let opened = lockhouse.answer("python", &using("python", "mine"));
    table.row("no file is opened", equal(&opened["error"]["type"], &json!("PermissionError")));
    table.finish();
}

#[test]
fn a_program_can_neither_escape_nor_flood_the_skill_store() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("state/lockhouse/secret/SKILL.md", "---\nname: secret\ndescription: d\n---\n");
    lockhouse.file("state/lockhouse/secret/skill.py", "secret = 1");
    let mut table = Table::new("names that are paths");
    for name in ["../secret", ".drafts/mine", "..", "/etc", "a/b", "a\\0b", ".lock", "mine/versions/1"] {
        let program = format!("import _lockhouse\n_lockhouse.load_skill('{name}')[0]");
        let answer = lockhouse.answer("python", &program);
        table.row(format!("load {name:?}"), ensure(answer["value"] == false, &answer));
        let program = format!(
            "from mcp_tools import call_tool\ncall_tool('skills', 'save', {{'name': '{name}', 'description': 'd', 'code': 'x', 'language': 'python'}})"
        );
        let answer = lockhouse.answer("python", &program);
        table.row(format!("save {name:?}"), ensure(answer["error"]["code"] == "invalid_arguments", &answer));
    }
    folder(&lockhouse, OWN_STORE, "mine", "mine = 1");
    let control = lockhouse.answer("python", "import _lockhouse\n_lockhouse.load_skill('mine')[0]");
    table.row("control", equal(&control["value"], &json!(true)));
    // Nobody approves, so a program can fill the store with drafts only.
    let fill = |from: u32, to: u32| {
        let program = format!(
            "import skills\nfor n in range({from}, {to}):\n    skills.save(f'draft_{{n}}', 'd', code=f'x = {{n}}')"
        );
        lockhouse.answer("python", &program)
    };
    table.row("drafts are kept", equal(&fill(0, 60)["status"], &json!("ok")));
    let filled = fill(60, 120);
    let told = filled["error"]["message"].as_str().unwrap_or_default();
    table.row("drafts are bounded", ensure(told.contains("100 drafts wait"), &filled));
    table.row(
        "and nothing else was saved",
        equal(std::fs::read_dir(lockhouse.path(OWN_STORE).join(".drafts")).unwrap().count(), 100),
    );
    let value = giving("python", "mine", "2");
    let replaced = lockhouse.answer("python", &saving("python", "draft_1", &value));
    table.row("one draft takes the place of another", equal(&replaced["value"]["state"], &json!("draft")));
    table.finish();
}
