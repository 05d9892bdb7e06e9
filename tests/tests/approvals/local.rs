//! People at this machine: `lockhouse approvals`, and the terminal of `lockhouse run`.

use std::path::Path;
use std::process::{Command, Stdio};

use lockhouse_tests::{Approver, Finished, Lockhouse, Person, Session, Table, ensure, equal};
use serde_json::{Value, json};

use crate::{ONE, lockhouse, outcomes, records, session};

/// The part of an answer that is refused: why.
fn reason(refused: &Value) -> &str {
    refused["refused"]["reason"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn somebody_at_this_machine_is_asked_where_the_ai_client_cannot() {
    let lockhouse = lockhouse("");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let mut table = Table::new("answers at the control socket");
    for (decision, scope, expected) in
        [("approve", "once", json!([3, 1])), ("approve", "execution", json!([3, 2]))]
    {
        let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
            let asked = approver.next("ask").await;
            approver.answer(&asked, decision, scope).await;
            approver.next("taken").await;
        });
        table.row(format!("{decision}, {scope}"), equal(answer["value"].clone(), expected));
    }
    let (answer, asked) = tokio::join!(session.run_asking(ONE), async {
        let asked = approver.next("ask").await;
        approver.answer(&asked, "decline", "once").await;
        asked
    });
    table.row(
        "decline",
        ensure(answer["value"][0][0] == "approval_declined" && answer["value"][1] == 2, answer),
    );
    let ask = &asked["ask"];
    let call = json!({
        "server": "fixture", "kind": "tool", "name": "add", "arguments": "{\n  \"a\": 1,\n  \"b\": 2\n}",
        "argument_names": ["\"a\"", "\"b\""], "argument_names_left_out": 0, "arguments_left_out": 0, "name_left_out": 0, "claims": "it only reads", "line": 2, "source": "try: r = fixture.add(a=1, b=2)['sum']",
        "rule": format!("{}:5", lockhouse.path("config/lockhouse/policy.toml").display()),
    });
    table.row("what is told", equal(ask["calls"].clone(), json!([call])));
    table.row("who asks", ensure(ask["client"] == "lockhouse-tests" && ask["seconds"] == 300.0, ask));
    let expected = ["asked", "once", "asked", "execution", "asked", "declined"]
        .map(|what| format!("{what} through local"));
    table.row("recorded", equal(outcomes(&lockhouse), expected.to_vec()));
    table.finish();
}

#[tokio::test]
async fn an_answer_counts_for_its_own_question_and_the_first_one_alone() {
    let lockhouse = lockhouse("");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let (mut one, mut other) = (Approver::watching(&lockhouse).await, Approver::watching(&lockhouse).await);
    let second = ONE.replace("a=1", "a=1000");
    let mut table = Table::new("answers that are not taken");
    let answering = async {
        let asked = [one.next("ask").await, one.next("ask").await];
        for _ in 0..2 {
            other.next("ask").await;
        }
        let mut mixed = asked[0].clone();
        mixed["ask"]["digest"] = asked[1]["ask"]["digest"].clone();
        one.answer(&mixed, "approve", "once").await;
        let refused = one.next("refused").await;
        table.row("the digest of another question", ensure(reason(&refused).contains("digest"), refused));
        one.answer(&asked[0], "approve", "always-and-ever").await;
        let refused = one.next("refused").await;
        table.row("an unknown scope", ensure(reason(&refused).contains("this is no answer"), refused));
        one.answer(&asked[0], "perhaps", "once").await;
        let refused = one.next("refused").await;
        table.row("an unknown decision", ensure(reason(&refused).contains("this is no answer"), refused));
        one.say(&json!({"supervisor": 1, "answer": {"id": 1, "digest": "", "decision": "approve"}})).await;
        let refused = one.next("refused").await;
        table.row("an unknown supervisor", ensure(reason(&refused).contains("not connected"), refused));
        other.answer(&asked[0], "decline", "once").await;
        other.next("taken").await;
        one.next("gone").await;
        one.answer(&asked[0], "approve", "once").await;
        let refused = one.next("refused").await;
        table.row("the second answer", ensure(reason(&refused).contains("the first answer counts"), refused));
        other.answer(&asked[0], "decline", "once").await;
        let refused = other.next("refused").await;
        table.row("the same answer twice", ensure(reason(&refused).contains("answered already"), refused));
        one.answer(&asked[1], "approve", "once").await;
        one.next("taken").await;
        asked
    };
    let (first, second, asked) =
        tokio::join!(session.run_asking(ONE), session.run_asking(&second), answering);
    // Which of the two executions came first does not matter: the first question was declined, and the second approved.
    let declined_first = asked[0]["ask"]["calls"][0]["arguments"].as_str().unwrap().contains("1000");
    let (declined, approved) = if declined_first { (second, first) } else { (first, second) };
    table.row("control: declined", ensure(declined["value"][0][0] == "approval_declined", declined));
    table.row("control: approved", ensure(approved["value"][0].is_number(), approved));
    let calls = records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count();
    table.row("one call", equal(calls, 1));
    table.finish();
}

#[tokio::test]
async fn supervisors_that_start_later_and_lockhouse_run_are_found() {
    let lockhouse = lockhouse("");
    let mut approver = Approver::start(&lockhouse);
    let (answer, ()) = tokio::join!(
        async {
            // The one who watches has to be there before there is something to ask.
            let code = format!("import time\ntime.sleep(2)\n{ONE}");
            let mut command = tokio::process::Command::from(lockhouse.command(&[
                "run",
                "--json",
                "--language",
                "python",
                "-c",
                &code,
            ]));
            command.stdin(std::process::Stdio::null()).output().await.expect("its output")
        },
        async {
            let asked = approver.next("ask").await;
            approver.answer(&asked, "approve", "once").await;
        }
    );
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    assert_eq!(answer["value"], json!([3, 1]), "{answer}");
    approver.next("left").await;
}

#[test]
fn without_a_terminal_there_is_json() {
    let finished = Lockhouse::new().run(&["approvals"]);
    assert!(finished.status == Some(2) && finished.stderr.contains("--json"), "{finished:?}");
}

/// Lockhouse on a terminal, where these lines are typed.
fn at_a_terminal(lockhouse: &Lockhouse, lines: &[&str], arguments: &[&str]) -> Finished {
    Finished::of(&mut typing(lockhouse, lines, arguments), b"")
}

fn typing(lockhouse: &Lockhouse, lines: &[&str], arguments: &[&str]) -> Command {
    typing_within(lockhouse, lines, &[], arguments)
}

/// The same where Lockhouse is started by another program, which comes before it.
fn typing_within(lockhouse: &Lockhouse, lines: &[&str], starter: &[&str], arguments: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("terminal.py");
    let run = lockhouse.command(arguments);
    let mut command = Command::new("python3");
    command.arg(script).args(lines).arg("--").args(starter).arg(run.get_program()).args(run.get_args());
    command.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// Three questions, one after the other.
const THREE: &str = "from mcp_tools import fixture, ToolError\nr = []\nfor i in range(3):\n  \
    try: r.append(fixture.add(a=i, b=10)['sum'])\n  except ToolError as e: r.append(e.code)\n\
    r + [fixture.count().get('add', 0)]";

#[tokio::test]
async fn lines_that_are_typed_ahead_answer_no_question_that_is_shown_later() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let running: Vec<_> = (0..3).map(|_| session.start_code("python", ONE)).collect();
    for _ in 0..3 {
        approver.next("ask").await;
    }
    // All three are open: many answers are typed when the first is shown, and one when each of the others is.
    let many = ["y"; 30].join("\n");
    let mut terminal = typing(&lockhouse, &[&many, "n", "n"], &["approvals"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut approved = 0;
    for run in running {
        let answer = lockhouse_tests::structured(run.await.unwrap());
        let value = &answer["value"][0];
        ensure(*value == 3 || value[0] == "approval_declined", &answer).unwrap();
        approved += usize::from(*value == 3);
    }
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert_eq!(approved, 1, "{:?}", outcomes(&lockhouse));
}

#[test]
fn what_is_typed_while_no_question_is_open_stays_for_who_else_reads_from_the_terminal() {
    let lockhouse = lockhouse("");
    // The first line is typed before there is a program, and the second after it.
    let shell =
        "printf 'Approve? [1] '; \"$0\" \"$@\"; printf 'Approve? [2] '; read -r line; echo \"read $line.\"";
    let arguments = ["run", "--language", "python", "-c", "import time\ntime.sleep(1)\n1"];
    let mut typing = typing_within(&lockhouse, &["early", "late"], &["/bin/sh", "-c", shell], &arguments);
    let finished = Finished::of(&mut typing, b"");
    assert!(finished.stdout.contains("read early."), "{finished:?}");
}

#[test]
fn who_runs_code_at_a_terminal_is_asked_there() {
    let arguments = ["run", "--json", "--language", "python", "-c", THREE];
    let mut table = Table::new("keys at a terminal");
    for (lines, expected) in [
        (&["y", "n", "yes"][..], json!([10, "approval_declined", 12, 2])),
        (&["e"], json!([10, 11, 12, 3])),
        (&["", "what?", "a lot"], json!(["approval_declined", "approval_declined", "approval_declined", 0])),
    ] {
        let lockhouse = lockhouse("");
        let finished = at_a_terminal(&lockhouse, lines, &arguments);
        let shown = &finished.stdout;
        let answer = shown.find("\n{").map(|at| serde_json::from_str::<Value>(shown[at..].trim()));
        let value = answer.and_then(Result::ok).map(|answer| answer["value"].clone());
        table.row(format!("{lines:?}"), equal(value, Some(expected)).map_err(|e| format!("{e}: {shown}")));
        let asked = shown
            .contains("Running code asks to call fixture.add with 2 arguments.\r\n    | \"a\", \"b\"\r\n");
        table.row(format!("{lines:?}: shown"), ensure(asked, shown));
        let through =
            outcomes(&lockhouse).iter().filter(|outcome| outcome.ends_with("through terminal")).count();
        table.row(format!("{lines:?}: recorded"), equal(through, lines.len()));
    }
    table.finish();
}
