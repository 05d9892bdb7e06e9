//! Tests of upstream calls in sessions: each run of a session has its own execution id, permitted servers, policy,
//! limits and audit records.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::sessions::outcome_text;

const IMPORT: [&str; 2] = [
    "from mcp_tools.fixture import add\nfrom mcp_tools import fixture, ToolError",
    "import { add } from 'mcp_tools/fixture'; import { ToolError } from 'mcp_tools'",
];
const ADD: [&str; 2] = ["add(a=1, b=2)['sum']", "(await add({a: 1, b: 2})).sum"];
const CODE_OF: [&str; 2] = [
    "def code(f):\n    try: f(); return 'ok'\n    except ToolError as error: return error.code",
    "async function code(f: any) { try { await f(); return 'ok' } catch (error: any) { return error.code ?? String(error) } }",
];

#[tokio::test]
async fn imports_persist_and_each_run_is_an_execution() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("imports of servers");
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        session.run_in(language, language, IMPORT[index]).await;
        let mut executions = Vec::new();
        for run in 2..=3 {
            let answer = session.run_in(language, language, ADD[index]).await;
            table.row(format!("{language}: run {run}"), equal(outcome_text(&answer), "3".into()));
            table.row(
                format!("{language}: its calls"),
                equal(answer["calls"].as_array().map(Vec::len), Some(1)),
            );
            executions.push(answer["execution"].clone());
        }
        table.row(format!("{language}: executions"), ensure(executions[0] != executions[1], &executions));
        let records = lockhouse.records();
        for execution in &executions {
            let of = |event: &str| {
                records
                    .iter()
                    .filter(|record| record["event"] == event && record["execution"] == *execution)
                    .count()
            };
            let found = ["execution", "call", "outcome", "end"].map(of);
            table.row(format!("{language}: records"), equal(found, [1, 1, 1, 1]));
            let session = records
                .iter()
                .find(|record| record["event"] == "execution" && record["execution"] == *execution);
            table.row(
                format!("{language}: its session"),
                equal(session.map(|record| &record["session"]), Some(&language.into())),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn calls_are_counted_in_each_run() {
    let lockhouse = Lockhouse::with_fixture().config("[limits]\ncalls = 5\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("calls of runs, 5 each");
    let times = |count: usize| {
        [
            format!("from mcp_tools.fixture import add\n[add(a=n, b=0)['sum'] for n in range({count})]"),
            format!(
                "const r{count} = []; for (let n = 0; n < {count}; n++) r{count}.push((await fixture.add({{a: n, b: 0}})).sum); r{count}"
            ),
        ]
    };
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        for run in 1..=3 {
            let answer = session.run_in(language, language, &times(5)[index]).await;
            table.row(
                format!("{language}: 5 calls, run {run}"),
                equal(outcome_text(&answer), "[0,1,2,3,4]".into()),
            );
        }
        let answer = session.run_in(language, language, &times(6)[index]).await;
        let ended =
            outcome_text(&answer).contains("tool call limit of 5") && !answer["session"]["ended"].is_null();
        table.row(format!("{language}: the sixth ends it"), ensure(ended, &answer));
    }
    table.finish();
}

fn policy(allow: &str) -> String {
    format!("version = 1\n[servers.fixture]\nallow = [{allow}]\n")
}

#[tokio::test]
async fn each_run_uses_the_current_policy_and_its_own_scope() {
    let mut table = Table::new("policies between the runs of a session");
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        let lockhouse = Lockhouse::with_fixture();
        let session = lockhouse.serve().await;
        session.run_in("s", language, IMPORT[index]).await;
        session.run_in("s", language, CODE_OF[index]).await;
        let look = [
            "[code(lambda: add(a=1, b=2)), code(lambda: fixture.text(text='x'))]",
            "[await code(() => add({a: 1, b: 2})), await code(() => fixture.text({text: 'x'}))]",
        ][index];
        let mut row = |name: &str, answer: &Value, expected: &str| {
            table.row(format!("{language}: {name}"), equal(outcome_text(answer), expected.to_owned()));
        };
        row("both", &session.run_in("s", language, look).await, r#"["ok","ok"]"#);
        let scoped = json!({"language": language, "code": look, "session": "s", "servers": ["fixture.add"]});
        let answer = session.run_with(scoped).await;
        row("a scope of one run", &answer, r#"["ok","denied"]"#);
        row("and not of the next", &session.run_in("s", language, look).await, r#"["ok","ok"]"#);
        lockhouse.file("config/lockhouse/policy.toml", policy(r#""text""#));
        session.reload().await;
        row("less", &session.run_in("s", language, look).await, r#"["denied","ok"]"#);
        lockhouse.file("config/lockhouse/policy.toml", policy(r#""*""#));
        session.reload().await;
        row("more", &session.run_in("s", language, look).await, r#"["ok","ok"]"#);
    }
    table.finish();
}

/// After an interrupted run, the calls that it had sent or queued must not be made or answered during the next run of
/// the session.
#[tokio::test]
async fn an_interrupted_run_leaves_no_calls_for_the_next_run() {
    let lockhouse = Lockhouse::with_fixture().config("[limits]\nparallel_calls = 2\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("calls of an interrupted run");
    let begin = [
        "import asyncio\nfrom mcp_tools.aio import fixture as f\nasync def one():\n    try: await f.slow(ms=30000)\n    except Exception: pass\n    await f.text(text='zombie')\n\
         await asyncio.gather(*(one() for _ in range(20)))",
        "async function one() { try { await fixture.slow({ms: 30000}) } catch {} await fixture.text({text: 'zombie'}) }\n\
         await Promise.all(Array.from({length: 20}, one))",
    ];
    let then = [
        "from mcp_tools.fixture import add\nawait asyncio.sleep(0.2)\nadd(a=1, b=2)['sum']",
        "await new Promise(d => setTimeout(d, 200)); (await fixture.add({a: 1, b: 2})).sum",
    ];
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        let before = lockhouse.audit().len();
        let arguments =
            json!({"language": language, "code": begin[index], "session": language, "timeout_s": 0.5});
        let answer = session.run_with(arguments).await;
        table.row(format!("{language}: stopped"), equal(answer["status"].as_str(), Some("timeout")));
        table.row(
            format!("{language}: it lives"),
            ensure(answer["session"]["ended"].is_null(), &answer["session"]),
        );
        let answer = session.run_in(language, language, then[index]).await;
        table.row(format!("{language}: the next one"), equal(outcome_text(&answer), "3".into()));
        let records = lockhouse.audit();
        let of = |tool: &str| {
            let new = &records[before..];
            new.iter().filter(|record| record["event"] == "call" && record["tool"] == tool).count()
        };
        table.row(
            format!("{language}: calls that were made"),
            equal((of("slow"), of("text"), of("add")), (2, 0, 1)),
        );
    }
    table.finish();
}

/// A Python thread may still wait for the result of a call when its run ends. The call then fails with an error, and
/// the thread continues in the next run of the session.
#[tokio::test]
async fn a_thread_that_waits_for_a_result_gets_an_error_when_its_run_ends() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let code = "import threading, queue\nfrom mcp_tools.fixture import slow\nfrom mcp_tools import ToolError\nq = queue.Queue()\n\
        def wait():\n    try: slow(ms=60000)\n    except ToolError as error: q.put(str(error))\n\
        threading.Thread(target=wait, daemon=True).start()\nimport time; time.sleep(0.3)";
    let answer = session.run_in("s", "python", code).await;
    assert_eq!(answer["calls"][0]["outcome"], "unknown", "{answer}");
    let answer = session.run_in("s", "python", "q.get(timeout=10)").await;
    assert!(outcome_text(&answer).contains("run of the session ended before the answer came"), "{answer}");
    wait_until("its record", async || {
        lockhouse
            .audit()
            .iter()
            .any(|record| record["event"] == "outcome" && record["tool"] == "slow")
            .then_some(())
    })
    .await;
}
