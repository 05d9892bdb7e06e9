//! Tests of approvers on the same machine, who answer with `lockhouse approvals` or at the terminal of `lockhouse run`.

use std::path::Path;
use std::process::{Command, Stdio};

use lockhouse_tests::{
    Approver, ClientUser, CommandOutput, Lockhouse, Session, Table, UserReply, ensure, equal,
};
use serde_json::{Value, json};

use crate::approvals::{ONE, lockhouse, outcomes, records, session};

/// Returns why Lockhouse rejected an approver's answer, from the message `refused` that it sends to the approver.
fn reason(refused: &Value) -> &str {
    refused["refused"]["reason"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_local_approver_is_asked_if_the_ai_client_has_no_elicitation() {
    let lockhouse = lockhouse("");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut table = Table::new("answers at the control socket");
    for (decision, scope, expected) in
        [("approve", "once", json!([3, 1])), ("approve", "execution", json!([3, 2]))]
    {
        let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
            let question = approver.next("ask").await;
            approver.answer(&question, decision, scope).await;
            approver.next("taken").await;
        });
        table.row(format!("{decision}, {scope}"), equal(answer["value"].clone(), expected));
    }
    let (answer, question) = tokio::join!(session.run_asking(ONE), async {
        let question = approver.next("ask").await;
        approver.answer(&question, "decline", "once").await;
        question
    });
    table.row(
        "decline",
        ensure(answer["value"][0][0] == "approval_declined" && answer["value"][1] == 2, answer),
    );
    let ask = &question["ask"];
    let call = json!({
        "server": "fixture", "kind": "tool", "name": "add", "arguments": "{\n  \"a\": 1,\n  \"b\": 2\n}",
        "argument_names": ["\"a\"", "\"b\""], "overview": "\"a\": 1, \"b\": 2", "argument_names_left_out": 0, "arguments_left_out": 0, "name_left_out": 0, "claims": "it only reads", "line": 2, "source": "try: r = fixture.add(a=1, b=2)['sum']",
        "rule": format!("{}:5", lockhouse.path("config/lockhouse/policy.toml").display()),
    });
    table.row("the displayed call", equal(ask["calls"].clone(), json!([call])));
    table.row(
        "the requesting process",
        ensure(ask["client"] == "lockhouse-tests" && ask["seconds"] == 300.0, ask),
    );
    let expected = ["asked", "once", "asked", "execution", "asked", "declined"]
        .map(|what| format!("{what} through local"));
    table.row("recorded", equal(outcomes(&lockhouse), expected.to_vec()));
    table.finish();
}

#[tokio::test]
async fn the_user_of_the_ai_client_and_a_local_approver_are_asked_at_the_same_time() {
    let mut table = Table::new("first answer");
    let silent = ClientUser::replying(UserReply::NoReply);
    let accepting = ClientUser::replying(UserReply::Delayed(
        std::time::Duration::from_millis(300),
        json!({"scope": "once"}),
    ));
    // A client of 2026-07-28 that does not repeat its request gets no answer, whoever approved the call.
    let older = rmcp::service::ClientLifecycleMode::Initialize;
    for (user, mode, by, others) in [
        (silent, older.clone(), "local", "taken"),
        (accepting.clone(), older, "client", "gone"),
        (accepting, Session::latest(), "client", "gone"),
    ] {
        let lockhouse = lockhouse("");
        let session = session(&lockhouse, &user, mode).await;
        let mut approver = Approver::connected(&lockhouse).await;
        let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
            let question = approver.next("ask").await;
            if by == "local" {
                approver.answer(&question, "approve", "once").await;
            }
            approver.next(others).await;
        });
        table.row(format!("{by}: approved"), equal(answer["value"].clone(), json!([3, 1])));
        let expected =
            ["asked through client".into(), "asked through local".into(), format!("once through {by}")];
        table.row(format!("{by}: recorded"), equal(outcomes(&lockhouse), expected.to_vec()));
    }
    table.finish();
}

#[tokio::test]
async fn a_local_approver_is_asked_if_the_ai_client_declines_at_once() {
    let lockhouse = lockhouse("");
    // Headless AI clients decline by themselves.
    let headless = ClientUser::replying(UserReply::Decline);
    let session = session(&lockhouse, &headless, Session::latest()).await;
    let mut table = Table::new("an AI client that declines by itself");
    let answer = session.run_asking(ONE).await;
    let message = answer["value"][0][1].as_str().unwrap_or_default();
    let says = message == "the question about fixture.add was declined at once";
    table.row("without a local approver", ensure(says && answer["value"][1] == 0, &answer));
    // What an operator can do is in the log, since the model cannot do it.
    let log = session.wait_for_log("through = \"local\"").await;
    table.row("the log", ensure(log.contains("lockhouse approvals"), log));
    let mut approver = Approver::connected(&lockhouse).await;
    let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
        let question = approver.next("ask").await;
        approver.answer(&question, "approve", "once").await;
        approver.next("taken").await;
    });
    table.row("with one", equal(answer["value"].clone(), json!([3, 1])));
    let expected = [
        "asked through client",
        "declined through client",
        "asked through client",
        "asked through local",
        "once through local",
    ];
    table.row("recorded", equal(outcomes(&lockhouse), expected.map(str::to_owned).to_vec()));
    table.finish();
}

#[tokio::test]
async fn an_answer_applies_only_to_its_own_question_and_the_first_answer_wins() {
    let lockhouse = lockhouse("");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let (mut one, mut other) = (Approver::connected(&lockhouse).await, Approver::connected(&lockhouse).await);
    let second = ONE.replace("a=1", "a=1000");
    let mut table = Table::new("rejected answers");
    let answering = async {
        let question = [one.next("ask").await, one.next("ask").await];
        for _ in 0..2 {
            other.next("ask").await;
        }
        let mut mixed = question[0].clone();
        mixed["ask"]["digest"] = question[1]["ask"]["digest"].clone();
        one.answer(&mixed, "approve", "once").await;
        let refused = one.next("refused").await;
        table.row("the digest of another question", ensure(reason(&refused).contains("digest"), refused));
        one.answer(&question[0], "approve", "always-and-ever").await;
        let refused = one.next("refused").await;
        table.row("an unknown scope", ensure(reason(&refused).contains("not a valid answer"), refused));
        one.answer(&question[0], "perhaps", "once").await;
        let refused = one.next("refused").await;
        table.row("an unknown decision", ensure(reason(&refused).contains("not a valid answer"), refused));
        one.send_line(&json!({"supervisor": 1, "answer": {"id": 1, "digest": "", "decision": "approve"}}))
            .await;
        let refused = one.next("refused").await;
        table.row("an unknown supervisor", ensure(reason(&refused).contains("no longer connected"), refused));
        other.answer(&question[0], "decline", "once").await;
        other.next("taken").await;
        one.next("gone").await;
        one.answer(&question[0], "approve", "once").await;
        let refused = one.next("refused").await;
        table.row("the second answer", ensure(reason(&refused).contains("the first answer counts"), refused));
        other.answer(&question[0], "decline", "once").await;
        let refused = other.next("refused").await;
        table.row("the same answer twice", ensure(reason(&refused).contains("answered already"), refused));
        one.answer(&question[1], "approve", "once").await;
        one.next("taken").await;
        question
    };
    let (first, second, question) =
        tokio::join!(session.run_asking(ONE), session.run_asking(&second), answering);
    // Either execution may have asked first. The first question was declined, and the second approved.
    let declined_first = question[0]["ask"]["calls"][0]["arguments"].as_str().unwrap().contains("1000");
    let (declined, approved) = if declined_first { (second, first) } else { (first, second) };
    table.row("control: declined", ensure(declined["value"][0][0] == "approval_declined", declined));
    table.row("control: approved", ensure(approved["value"][0].is_number(), approved));
    let calls = records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count();
    table.row("one call", equal(calls, 1));
    table.finish();
}

#[tokio::test]
async fn a_local_approver_finds_later_supervisors_and_lockhouse_run() {
    let lockhouse = lockhouse("");
    let mut approver = Approver::start(&lockhouse);
    let (answer, ()) = tokio::join!(
        async {
            // The approver has to connect before the question is asked.
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
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", "once").await;
        }
    );
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    assert_eq!(answer["value"], json!([3, 1]), "{answer}");
    approver.next("left").await;
}

#[test]
fn approvals_print_json_without_a_terminal() {
    let finished = Lockhouse::new().run(&["approvals"]);
    assert!(finished.status == Some(2) && finished.stderr.contains("--json"), "{finished:?}");
}

/// Runs `lockhouse ARGUMENTS` on a pseudo-terminal, types these lines into it, and returns the output.
fn at_a_terminal(lockhouse: &Lockhouse, lines: &[&str], arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(&mut typing(lockhouse, lines, arguments), b"")
}

fn typing(lockhouse: &Lockhouse, lines: &[&str], arguments: &[&str]) -> Command {
    typing_within(lockhouse, lines, &[], arguments)
}

/// Returns a command that starts `lockhouse ARGUMENTS` through the program `starter` on a pseudo-terminal, and types
/// these lines into it. With an empty `starter`, Lockhouse is started without such a program.
fn typing_within(lockhouse: &Lockhouse, lines: &[&str], starter: &[&str], arguments: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("terminal.py");
    let run = lockhouse.command(arguments);
    let mut command = Command::new("python3");
    command.arg(script).args(lines).arg("--").args(starter).arg(run.get_program()).args(run.get_args());
    command.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// A Python program that makes three calls which require approval, one after the other.
const THREE: &str = "from mcp_tools import fixture, ToolError\nr = []\nfor i in range(3):\n  \
    try: r.append(fixture.add(a=i, b=10)['sum'])\n  except ToolError as e: r.append(e.code)\n\
    r + [fixture.count().get('add', 0)]";

#[tokio::test]
async fn lines_typed_ahead_answer_no_later_question() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let running: Vec<_> = (0..3).map(|_| session.start_code("python", ONE)).collect();
    for _ in 0..3 {
        approver.next("ask").await;
    }
    // All three questions are asked. Many answers are typed at the first question, and one answer at each of the
    // others.
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
fn input_without_a_pending_question_is_left_in_the_terminal() {
    let lockhouse = lockhouse("");
    // The first line is typed before a program runs, and the second after its end.
    let shell =
        "printf 'Approve? [1] '; \"$0\" \"$@\"; printf 'Approve? [2] '; read -r line; echo \"read $line.\"";
    let arguments = ["run", "--language", "python", "-c", "import time\ntime.sleep(1)\n1"];
    let mut typing = typing_within(&lockhouse, &["early", "late"], &["/bin/sh", "-c", shell], &arguments);
    let finished = CommandOutput::run(&mut typing, b"");
    assert!(finished.stdout.contains("read early."), "{finished:?}");
}

#[test]
fn lockhouse_run_asks_for_approval_on_its_terminal() {
    let arguments = ["run", "--json", "--language", "python", "-c", THREE];
    let mut table = Table::new("keys at a terminal");
    for (lines, expected) in [
        (&["y", "n", "yes"][..], json!([10, "approval_declined", 12, 2])),
        (&["e"], json!([10, 11, 12, 3])),
        (&["", "what?", "a lot"], json!(["approval_declined", "approval_declined", "approval_declined", 0])),
    ] {
        let lockhouse = lockhouse("");
        let finished = at_a_terminal(&lockhouse, lines, &arguments);
        let printed = &finished.stdout;
        let answer = printed.find("\n{").map(|at| serde_json::from_str::<Value>(printed[at..].trim()));
        let value = answer.and_then(Result::ok).map(|answer| answer["value"].clone());
        table.row(format!("{lines:?}"), equal(value, Some(expected)).map_err(|e| format!("{e}: {printed}")));
        let asked = printed.contains(
            "Running code asks to call fixture.add with 2 arguments.\r\n    | \"a\": 0, \"b\": 10\r\n",
        );
        table.row(format!("{lines:?}: shown"), ensure(asked, printed));
        let through =
            outcomes(&lockhouse).iter().filter(|outcome| outcome.ends_with("through terminal")).count();
        table.row(format!("{lines:?}: recorded"), equal(through, lines.len()));
    }
    table.finish();
}
