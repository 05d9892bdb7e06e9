//! Tests of the permission to save skills, which the policy gives or which an approver gives for each skill.

use lockhouse_tests::{ClientUser, Lockhouse, Session, Table, UserReply, ensure, equal};
use serde_json::{Value, json};

use crate::skills::{OWN_STORE, giving, lockhouse, saving, using};

/// Returns the names of the approved skills in the user's own skill store. Drafts are not included.
fn saved(lockhouse: &Lockhouse) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(lockhouse.path(OWN_STORE)) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn the_policy_decides_who_may_save() {
    let none = Lockhouse::new;
    let with = |policy: &str| Lockhouse::new().policy(&format!("version = 1\n{policy}"));
    let rule = "[servers.skills]\nallow = [\"save\"]\n[[servers.skills.rules]]\ntool = \"save\"\nwhen = { name = \"mine\" }\neffect = \"deny\"\n";
    let client = "[servers.skills]\nallow = [\"save\"]\n[clients.\"*\".servers.fixture]\nallow = [\"*\"]\n";
    let mut table = Table::new("permission to save");
    for language in ["python", "typescript"] {
        let program = saving(language, "mine", &giving(language, "mine", "7"));
        for (name, lockhouse, outcome) in [
            ("no policy: a draft", none(), "draft"),
            (
                "a policy that says nothing of skills: a draft",
                with("[servers.fixture]\nallow = [\"*\"]\n"),
                "draft",
            ),
            ("ask: a draft, since nobody is there", with("[servers.skills]\nask = [\"save\"]\n"), "draft"),
            ("allow", with("[servers.skills]\nallow = [\"save\"]\n"), "saved"),
            ("deny", with("[servers.skills]\ndeny = [\"save\"]\n"), "denied"),
            ("an empty table", with("[servers.skills]\n"), "denied"),
            ("a rule on the name", with(rule), "denied"),
            ("a client's table without skills", with(client), "denied"),
        ] {
            let answer = lockhouse.answer(language, &program);
            let found =
                answer["value"]["state"].as_str().or(answer["error"]["code"].as_str()).unwrap_or_default();
            table.row(
                format!("{language}: {name}"),
                equal(found, outcome).map_err(|why| format!("{why} {answer}")),
            );
            let kept = if outcome == "saved" { vec!["mine".to_owned()] } else { Vec::new() };
            table.row(format!("{language}: {name}: what is kept"), equal(saved(&lockhouse), kept));
            let used = lockhouse.answer(language, &using(language, "mine"));
            let expected = if outcome == "saved" { json!(7) } else { Value::Null };
            table.row(
                format!("{language}: {name}: what can be imported"),
                ensure(used["value"] == expected, &used),
            );
            let drafts = lockhouse.path(OWN_STORE).join(".drafts/mine").exists();
            table.row(format!("{language}: {name}: what waits"), equal(drafts, outcome == "draft"));
        }
    }
    table.finish();
}

#[test]
fn an_execution_limited_to_some_servers_saves_only_if_skills_is_among_them() {
    let mut table = Table::new("servers = [...]");
    for (name, arguments, state) in [
        ("not named", &["--server", "fixture"][..], "denied"),
        ("named", &["--server", "fixture", "--server", "skills"], "saved"),
        ("nothing is said", &[], "saved"),
    ] {
        let lockhouse = lockhouse();
        let program = saving("python", "mine", "x = 1");
        let run = [&["run", "-", "--language", "python", "--json"], arguments].concat();
        let answer = lockhouse.run_with_input(&run, program.as_bytes()).json();
        let found =
            answer["value"]["state"].as_str().or(answer["error"]["code"].as_str()).unwrap_or_default();
        table.row(name, equal(found, state).map_err(|why| format!("{why} {answer}")));
    }
    table.finish();
}

#[test]
fn a_draft_cannot_run_until_it_is_approved() {
    let mut table = Table::new("drafts");
    for language in ["python", "typescript"] {
        let lockhouse = Lockhouse::new();
        let draft = |value: &str| {
            lockhouse.answer(language, &saving(language, "mine", &giving(language, "mine", value)))
        };
        let used = || lockhouse.answer(language, &using(language, "mine"));
        let message = draft("1")["value"]["message"].as_str().unwrap_or_default().to_owned();
        table.row(
            format!("{language}: what to do is told"),
            ensure(message.contains("`lockhouse skills approve mine`"), message),
        );
        let answer = used();
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: it cannot be imported"), ensure(told.contains("is a draft"), &answer));
        let found = lockhouse.answer(
            language,
            if language == "python" { "import skills\nskills.list()" } else { "await skills.list()" },
        );
        table.row(format!("{language}: nor found"), equal(&found["value"], &json!([])));
        let unasked = lockhouse.run(&["skills", "approve", "mine"]);
        let holds = unasked.stdout.contains("mine()")
            && unasked.stderr.contains("--yes")
            && used()["status"] == "error";
        table.row(format!("{language}: without a word of a person it stays one"), ensure(holds, &unasked));
        let approved = lockhouse.run(&["skills", "approve", "mine", "--yes"]);
        table.row(format!("{language}: approved"), equal(approved.status, Some(0)));
        table.row(format!("{language}: then it runs"), equal(&used()["value"], &json!(1)));
        let answer = draft("2");
        table.row(
            format!("{language}: the next one is a draft again"),
            equal(&answer["value"]["version"], &json!(2)),
        );
        table.row(format!("{language}: and the first stays in force"), equal(&used()["value"], &json!(1)));
        let shown = lockhouse.run(&["skills", "approve", "mine", "--yes"]).stdout;
        let changes =
            shown.lines().filter(|line| line.starts_with(['-', '+']) && line.contains("return")).count();
        table.row(
            format!("{language}: the changes are shown"),
            equal(changes, 2).map_err(|why| format!("{why} {shown}")),
        );
        table.row(format!("{language}: the second is in force"), equal(&used()["value"], &json!(2)));
        let same = draft("2");
        table.row(
            format!("{language}: what is saved already needs nobody"),
            equal(&same["value"]["state"], &json!("saved")),
        );
    }
    table.finish();
}

#[tokio::test]
async fn the_approver_sees_the_code_of_a_skill() {
    let mut table = Table::new("elicitation");
    for (name, says, state) in
        [("yes", UserReply::AcceptEmpty, "saved"), ("no", UserReply::Decline, "approval_declined")]
    {
        let lockhouse = Lockhouse::new();
        let person = ClientUser::replying(says);
        let session =
            Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
        let answer = session.run_asking(&saving("python", "mine", "def mine():\n    return 7\n")).await;
        let found =
            answer["value"]["state"].as_str().or(answer["error"]["code"].as_str()).unwrap_or_default();
        table.row(name, equal(found, state).map_err(|why| format!("{why} {answer}")));
        let asked = person.received_requests();
        let message = asked.first().and_then(|asked| asked["message"].as_str()).unwrap_or_default();
        let lines = [
            "\"name\": \"mine\"",
            "\"description\": \"A skill.\"",
            "        def mine():",
            "            return 7",
        ];
        let holds = asked.len() == 1 && lines.iter().all(|line| message.contains(line));
        table.row(format!("{name}: what is asked"), ensure(holds, message));
        let places = ["    | \"code\" of 2 lines:", "    | \"description\":", "    | \"name\":"]
            .map(|row| message.find(row));
        let in_order = places.iter().all(Option::is_some) && places.is_sorted();
        table.row(format!("{name}: code comes first"), ensure(in_order, message));
        let used = session.run_asking(&using("python", "mine")).await;
        table.row(format!("{name}: then"), equal(used["status"] == "ok", state == "saved"));
        let waits = lockhouse.path(OWN_STORE).join(".drafts/mine").exists();
        table.row(format!("{name}: no draft is left"), equal(waits, false));
        let decisions: Vec<Value> =
            lockhouse.audit().into_iter().filter(|record| record["event"] == "call").collect();
        let rules: Vec<&str> = decisions.iter().filter_map(|record| record["rule"].as_str()).collect();
        let holds = rules.iter().all(|rule| rule.starts_with("built in:"))
            && rules.len() == usize::from(state == "saved");
        table.row(format!("{name}: the record"), ensure(holds, rules));
    }
    table.finish();
}
