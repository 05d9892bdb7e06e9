//! Tests of the approver's answer "always", which adds a rule to the policy file. Lockhouse shows the change to the
//! approver beforehand, writes it atomically, and applies it at once.

use std::path::PathBuf;

use lockhouse_tests::{Approver, ClientUser, Lockhouse, Session, Table, UserReply, ensure, equal};
use serde_json::{Value, json};

use crate::approvals::{ONE, POLICY, eras, lockhouse, outcomes, records, session};

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

fn always() -> UserReply {
    UserReply::Accept(json!({"scope": "always"}))
}

#[tokio::test]
async fn an_always_answer_changes_the_policy_exactly_as_the_prompt_showed() {
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
            let person = ClientUser::replying(UserReply::Sequence(vec![always(), UserReply::Decline]));
            let ai_client = session(&lockhouse, &person, mode.clone()).await;
            let first = ai_client.run_asking(&format!("{ONE}\nfixture.add(a=2, b=2)['sum']")).await;
            table.row(format!("{name}: the calls"), equal(first["value"].clone(), json!(4)));
            let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
            let removed = text.lines().filter(|line| !written.contains(line));
            table.row(format!("{name}: the removed lines"), ensure(removed.count() <= 1, &written));
            let message = person.received_requests()[0]["message"].as_str().unwrap().to_owned();
            let printed: String = message
                .lines()
                .skip_while(|line| !line.starts_with("  always: "))
                .filter_map(|line| line.strip_prefix("    | "))
                .filter(|line| {
                    line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")
                })
                .filter(|line| line.len() > 1)
                .map(|line| format!("{line}\n"))
                .collect();
            table.row(format!("{name}: shown"), equal(printed.as_str(), *expected));
            for line in expected.lines().filter_map(|line| line.strip_prefix('+')) {
                table.row(format!("{name}: {line}"), ensure(written.contains(line), &written));
            }
            // The rule is effective at once in this process, and in processes that start later.
            let second = ai_client.run_asking(ONE).await;
            table.row(format!("{name}: no question more"), equal(person.received_requests().len(), 1));
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
async fn an_always_answer_to_a_batch_adds_one_rule_per_tool() {
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(always());
    let ai_client = session(&lockhouse, &person, Session::latest()).await;
    let code = "import asyncio\nfrom mcp_tools.aio import fixture\n\
        await asyncio.gather(*[fixture.add(a=i, b=1) for i in range(5)], fixture.echo(value=1), fixture.delete_everything())\n1";
    let answer = ai_client.run_asking(code).await;
    assert_eq!(answer["value"], 1, "{answer}");
    let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
    assert_eq!(written.matches("[[servers.fixture.rules]]").count(), 3, "{written}");
    for tool in ["add", "echo", "delete_everything"] {
        assert!(written.contains(&format!("tool = \"{tool}\"\neffect = \"allow\"\n")), "{written}");
    }
}

#[tokio::test]
async fn always_is_not_offered_if_the_policy_cannot_be_changed() {
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
        let person = ClientUser::replying(always());
        let ai_client = session(&lockhouse, &person, Session::latest()).await;
        before(&lockhouse);
        let answer = ai_client.run_asking(ONE).await;
        let scopes = person.received_requests()[0]["requestedSchema"]["properties"]["scope"]["enum"].clone();
        let expected =
            if offered { json!(["once", "execution", "always"]) } else { json!(["once", "execution"]) };
        table.row(name, equal(scopes, expected));
        let made = answer["value"][0] == 3;
        table.row(format!("{name}: the call"), ensure(made == offered, answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_policy_changed_since_the_prompt_is_not_overwritten_and_the_call_is_approved_once() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let ai_client = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let other = format!("{POLICY}# Changed meanwhile.\n");
    let answering = async {
        let question = approver.next("ask").await;
        lockhouse.file("config/lockhouse/policy.toml", &other);
        approver.answer(&question, "approve", "always").await;
    };
    let (answer, ()) = tokio::join!(ai_client.run_asking(ONE), answering);
    assert_eq!(answer["value"], json!([3, 1]), "{answer}");
    assert_eq!(std::fs::read_to_string(policy(&lockhouse)).unwrap(), other);
    assert_eq!(outcomes(&lockhouse), ["asked through local", "once through local"]);
    let log = ai_client.wait_for_log("was changed since the change was shown").await;
    assert!(log.contains("was approved once, and the policy stays as it was"), "{log}");
}

#[tokio::test]
async fn an_approval_that_the_administrator_requires_cannot_be_lifted_by_an_answer() {
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
        let says = [always(), UserReply::Accept(json!({"scope": "execution"})), UserReply::AcceptEmpty];
        let person = ClientUser::replying(UserReply::Sequence(says.to_vec()));
        let mut command = lockhouse.command(&["serve"]);
        command.env("LOCKHOUSE_REQUIREMENTS", &path);
        let session = Session::connect_as(person.clone(), command, Session::latest()).await;
        for approved in [false, true, true] {
            let answer = session.run_asking(ONE).await;
            table.row(format!("{name}: {approved}"), ensure((answer["value"][0] == 3) == approved, answer));
        }
        table.row(
            format!("{name}: approval is requested each time"),
            equal(person.received_requests().len(), 3),
        );
        let written = std::fs::read_to_string(policy(&lockhouse)).unwrap();
        table.row(format!("{name}: the file"), equal(written.as_str(), text));
    }
    table.finish();
}
