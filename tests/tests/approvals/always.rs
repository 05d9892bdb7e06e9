//! An answer that changes the policy: shown before, written whole, and in force at once.

use std::path::PathBuf;

use lockhouse_tests::{Approver, Lockhouse, Person, Says, Session, Table, ensure, equal};
use serde_json::{Value, json};

use crate::{ONE, POLICY, eras, lockhouse, outcomes, records, session};

const RULES: &str = "\
# Ours, by hand.
version = 1

[servers.fixture]          # one server
allow = [\"count\"]
deny = [\"env\"]

[[servers.fixture.rules]]  # small sums pass
tool = \"add\"
when = { a = { max = 10 } }
effect = \"ask\"             # for now

[[servers.fixture.rules]]
tool = \"add\"
effect = \"deny\"

# The end.
";

fn policy(lockhouse: &Lockhouse) -> PathBuf {
    lockhouse.path("config/lockhouse/policy.toml")
}

fn always() -> Says {
    Says::Yes(json!({"scope": "always"}))
}

#[tokio::test]
async fn an_answer_for_always_changes_the_policy_as_it_was_shown() {
    let mut table = Table::new("always");
    let rows = [
        ("a list", POLICY.to_owned(), "+[[servers.fixture.rules]]\n+tool = \"add\"\n+effect = \"allow\"\n"),
        (
            "a rule",
            RULES.to_owned(),
            "-effect = \"ask\"             # for now\n+effect = \"allow\"             # for now\n",
        ),
    ];
    for (era, mode) in eras() {
        for (name, text, expected) in &rows {
            let name = format!("{era}: {name}");
            let lockhouse = lockhouse("").policy(text);
            let person = Person::who_says(Says::InTurn(vec![always(), Says::No]));
            let asked = session(&lockhouse, &person, mode.clone()).await;
            let first = asked.run_asking(&format!("{ONE}\nfixture.add(a=2, b=2)['sum']")).await;
            table.row(format!("{name}: the calls"), equal(first["value"].clone(), json!(4)));
            let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
            let removed = text.lines().filter(|line| !written.contains(line));
            table.row(format!("{name}: what is gone"), ensure(removed.count() <= 1, &written));
            let message = person.asked()[0]["message"].as_str().unwrap().to_owned();
            let shown: String = message
                .lines()
                .skip_while(|line| !line.starts_with("  always: "))
                .filter_map(|line| line.strip_prefix("    | "))
                .filter(|line| {
                    line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")
                })
                .filter(|line| line.len() > 1)
                .map(|line| format!("{line}\n"))
                .collect();
            table.row(format!("{name}: shown"), equal(shown.as_str(), *expected));
            for line in expected.lines().filter_map(|line| line.strip_prefix('+')) {
                table.row(format!("{name}: {line}"), ensure(written.contains(line), &written));
            }
            // In force at once here, and for whoever starts later.
            let second = asked.run_asking(ONE).await;
            table.row(format!("{name}: no question more"), equal(person.asked().len(), 1));
            table.row(format!("{name}: a second run"), ensure(second["value"][0] == 3, &second));
            let other = lockhouse.answer("python", ONE);
            table.row(format!("{name}: another process"), ensure(other["value"][0] == 3, &other));
            let approvals: Vec<Value> = records(&lockhouse, "call")
                .iter()
                .filter(|call| call["tool"] == "add")
                .map(|call| call["approval"].clone())
                .collect();
            let expected = [json!("always"), json!("always"), Value::Null, Value::Null];
            table.row(format!("{name}: recorded"), equal(approvals, expected.to_vec()));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_table_of_calls_makes_one_change_for_each_tool() {
    let lockhouse = lockhouse("");
    let person = Person::who_says(always());
    let asked = session(&lockhouse, &person, Session::latest()).await;
    let code = "import asyncio\nfrom mcp_tools.aio import fixture\n\
        await asyncio.gather(*[fixture.add(a=i, b=1) for i in range(5)], fixture.echo(value=1), fixture.delete_everything())\n1";
    let answer = asked.run_asking(code).await;
    assert_eq!(answer["value"], 1, "{answer}");
    let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
    assert_eq!(written.matches("[[servers.fixture.rules]]").count(), 3, "{written}");
    for tool in ["add", "echo", "delete_everything"] {
        assert!(written.contains(&format!("tool = \"{tool}\"\neffect = \"allow\"\n")), "{written}");
    }
}

#[tokio::test]
async fn a_change_that_cannot_be_made_is_not_offered() {
    let mut table = Table::new("where `always` is not offered");
    let changed = format!("{POLICY}\n[servers.other]\nallow = [\"x\"]\n");
    let cases: [(&str, bool, &dyn Fn(&Lockhouse)); 4] = [
        ("control", true, &|_| ()),
        ("the file was changed, and the line is another", false, &|lockhouse| {
            lockhouse.file("config/lockhouse/policy.toml", format!("\n\n{changed}"));
        }),
        ("the file is no policy any more", false, &|lockhouse| {
            lockhouse.file("config/lockhouse/policy.toml", "version = ");
        }),
        ("the file is gone", false, &|lockhouse| std::fs::remove_file(policy(lockhouse)).unwrap()),
    ];
    for (name, offered, before) in cases {
        let lockhouse = lockhouse("");
        let person = Person::who_says(always());
        let asked = session(&lockhouse, &person, Session::latest()).await;
        before(&lockhouse);
        let answer = asked.run_asking(ONE).await;
        let scopes = person.asked()[0]["requestedSchema"]["properties"]["scope"]["enum"].clone();
        let expected =
            if offered { json!(["once", "execution", "always"]) } else { json!(["once", "execution"]) };
        table.row(name, equal(scopes, expected));
        let made = answer["value"][0] == 3;
        table.row(format!("{name}: the call"), ensure(made == offered, answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_shown_stays_and_the_call_is_approved_once() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let asked = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let other = format!("{POLICY}# Changed meanwhile.\n");
    let answering = async {
        let question = approver.next("ask").await;
        lockhouse.file("config/lockhouse/policy.toml", &other);
        approver.answer(&question, "approve", "always").await;
    };
    let (answer, ()) = tokio::join!(asked.run_asking(ONE), answering);
    assert_eq!(answer["value"], json!([3, 1]), "{answer}");
    assert_eq!(std::fs::read_to_string(policy(&lockhouse)).unwrap(), other);
    assert_eq!(outcomes(&lockhouse), ["asked through local", "once through local"]);
    let said = asked.says("was changed since the change was shown").await;
    assert!(said.contains("was approved once, and the policy stays as it was"), "{said}");
}

#[tokio::test]
async fn what_an_administrator_leaves_to_a_person_stays_so_whatever_they_answer() {
    let lockhouse = lockhouse("");
    let above = "version = 1\n[servers.fixture]\nallow = [\"*\"]\nask = [\"add\"]\n";
    let above = lockhouse.file("above.toml", above);
    let path = lockhouse.file("requirements.toml", format!("policy = {above:?}\n"));
    let mut table = Table::new("questions of the requirements");
    for (name, text) in [
        ("the user's policy allows it", "version = 1\n[servers.fixture]\nallow = [\"add\", \"count\"]\n"),
        ("the user's policy asks too", POLICY),
    ] {
        lockhouse.file("config/lockhouse/policy.toml", text);
        let says = [always(), Says::Yes(json!({"scope": "execution"})), Says::Bare];
        let person = Person::who_says(Says::InTurn(says.to_vec()));
        let mut command = lockhouse.command(&["serve"]);
        command.env("LOCKHOUSE_REQUIREMENTS", &path);
        let session = Session::connect_as(person.clone(), command, Session::latest()).await;
        for approved in [false, true, true] {
            let answer = session.run_asking(ONE).await;
            table.row(format!("{name}: {approved}"), ensure((answer["value"][0] == 3) == approved, answer));
        }
        table.row(format!("{name}: asked each time"), equal(person.asked().len(), 3));
        let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
        table.row(format!("{name}: the file"), equal(written.as_str(), text));
    }
    table.finish();
}
