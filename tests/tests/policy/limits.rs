//! Tests of the limits in a policy: call rates that apply to all executions together, and limits of a single execution.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, fixture_server, structured};
use serde_json::{Value, json};

fn policy(rest: &str) -> String {
    format!("version = 1\n[servers.fixture]\nallow = [\"*\"]\n{rest}")
}

/// A Python program that makes 64 concurrent calls of `add`, and returns how often each outcome occurred.
const CONCURRENT_CALLS: &str = "\
import asyncio, collections
from mcp_tools import ToolError
from mcp_tools.aio.fixture import add
async def of(n):
    try: return (await add(a=n, b=1))['sum'] - n
    except ToolError as error: return error.code
dict(collections.Counter(map(str, await asyncio.gather(*map(of, range(64))))))
";

/// Returns a Python program that executes the statements `calls`, then the call `last`, and returns the error of that
/// last call, or `None` if it succeeds.
fn error_after(calls: &str, last: &str) -> String {
    format!(
        "from mcp_tools import ToolError\nfrom mcp_tools.fixture import add, big, text\n{calls}\n\
         try: {last}; r = None\nexcept ToolError as e: r = [e.code, e.retryable, e.message]\nr"
    )
}

async fn received(session: &Session) -> Value {
    let answer =
        session.run_code("python", "from mcp_tools.fixture import count\ncount().get('add', 0)").await;
    answer["value"].clone()
}

#[tokio::test]
async fn concurrent_calls_get_exactly_what_a_rate_permits() {
    let rate = "[servers.fixture.limits.add]\nrate = { calls = 20, per = \"1 h\", burst = 20 }\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(&policy(rate));
    let session = lockhouse.serve().await;
    let mut table = Table::new("64 concurrent calls under a rate limit");
    let answer = session.run_code("python", CONCURRENT_CALLS).await;
    let found = &answer["value"];
    table.row(
        "python",
        equal(found, &json!({"1": 20, "rate_limited": 44})).map_err(|e| format!("{e} {answer}")),
    );
    table.row("what arrived", equal(received(&session).await, json!(20)));
    let code = "const all = await Promise.allSettled([...Array(64).keys()].map(n => fixture.add({a: n, b: 1})))\n\
                return all.filter(one => one.reason?.code === 'rate_limited').length";
    let answer = session.run_code("typescript", code).await;
    table.row("another execution and language", equal(answer["value"].clone(), json!(64)));
    lockhouse.file("config/lockhouse/policy.toml", policy(&format!("# changed\n{rate}")));
    session.reload().await;
    let answer = session.run_code("python", CONCURRENT_CALLS).await;
    table.row("after a reload", equal(answer["value"].clone(), json!({"rate_limited": 64})));
    table.row("what arrived in the end", equal(received(&session).await, json!(20)));
    let records = lockhouse.audit();
    let denials = records.iter().filter(|record| record["event"] == "denial" && record["tool"] == "add");
    let outcomes = records.iter().filter(|record| record["event"] == "outcome" && record["tool"] == "add");
    table.row("records", equal((denials.count(), outcomes.count()), (44 + 64 + 64, 20)));
    table.finish();
}

#[tokio::test]
async fn a_call_over_a_limit_is_refused_with_the_limit_and_its_line() {
    let rows = [
        (
            "a rate",
            "[servers.fixture.limits.add]\nrate = \"1/h\"\n",
            error_after("add(a=1, b=2)", "add(a=1, b=2)"),
            json!(["rate_limited", true]),
            &["tool fixture/add", "1/h", "policy.toml:5", "there is room again in 3"][..],
        ),
        (
            "a rate of a server",
            "rate = { calls = 3, per = \"1 min\", burst = 1 }\n",
            error_after("text(text='x')", "add(a=1, b=2)"),
            json!(["rate_limited", true]),
            &["server fixture", "3/min, 1 at once", "policy.toml:4", "there is room again in"],
        ),
        (
            "calls",
            "calls_per_execution = 2\n",
            error_after("add(a=1, b=2)\ntext(text='x')", "add(a=1, b=2)"),
            json!(["rate_limited", false]),
            &["one execution may have 2 calls of server fixture", "policy.toml:4"],
        ),
        (
            "arguments",
            "argument_bytes_per_execution = 100\n",
            error_after("text(text='x' * 50)", "text(text='x' * 50)"),
            json!(["rate_limited", false]),
            &["100 bytes of arguments, of which 61 are used and this call needs 61"],
        ),
        (
            "results",
            "result_bytes_per_execution = 10000\n",
            error_after("big(bytes=5000)", "big(bytes=5000)"),
            json!(["result_too_large", false]),
            &["the call was made", "10000", "policy.toml:4", "ask for less"],
        ),
        (
            "a timeout",
            "timeout_seconds = 1\n",
            error_after("from mcp_tools.fixture import slow", "slow(ms=5000)"),
            json!(["timeout", true]),
            &["within 1 s"],
        ),
    ];
    let mut table = Table::new("limits");
    for (name, limits, code, expected, words) in rows {
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(&policy(limits));
        let session = lockhouse.serve().await;
        let answer = session.run_code("python", &code).await;
        let value = &answer["value"];
        let told = value[2].as_str().unwrap_or_default();
        let right = json!([value[0], value[1]]) == expected && words.iter().all(|word| told.contains(word));
        table.row(name, ensure(right, &answer));
        // Another execution starts with new limits, except for rates.
        let first = if name == "a rate of a server" { "text(text='x')" } else { "add(a=1, b=2)" };
        let again = session.run_code("python", &error_after("", first)).await;
        let expected = if name.starts_with("a rate") { json!("rate_limited") } else { Value::Null };
        table.row(format!("{name}: another execution"), equal(again["value"][0].clone(), expected));
    }
    table.finish();
}

/// A Python program whose threads change the arguments of its calls as fast as they can, while the calls are in flight.
const MUTATE_ARGUMENTS: &str = "\
import sys, threading
import mcp_tools
from mcp_tools import ToolError
sys.setswitchinterval(1e-6)
arguments = {'value': {'to': 'good', 'also': []}}
stop = False
def change():
    while not stop:
        arguments['value']['to'] = 'evil'
        arguments['value']['also'].append('evil')
        arguments['value'] = {'to': 'good', 'also': []}
threads = [threading.Thread(target=change) for _ in range(2)]
for thread in threads: thread.start()
seen = {}
for _ in range(300):
    try: answer = mcp_tools.call_tool('fixture', 'echo', arguments)['value']['to']
    except ToolError as error: answer = error.code
    except RuntimeError: answer = 'changed while it was written'
    seen[answer] = seen.get(answer, 0) + 1
stop = True
for thread in threads: thread.join()
seen
";

#[tokio::test]
async fn the_arguments_that_were_checked_are_the_arguments_that_are_sent() {
    let rule = "[[servers.fixture.rules]]\ntool = \"echo\"\nwhen = { \"value.to\" = \"good\" }\neffect = \"allow\"\n";
    let policy = format!("version = 1\n[servers.fixture]\nallow = [\"count\"]\n{rule}");
    let session = Lockhouse::new().server("fixture", &[]).policy(&policy);
    let session = session.serve().await;
    let answer = session.run_code("python", MUTATE_ARGUMENTS).await;
    let seen = answer["value"].as_object().cloned().unwrap_or_default();
    let count = |name: &str| seen.get(name).and_then(Value::as_u64).unwrap_or(0);
    // The server returns what it received, so a result with `evil` would mean that an unchecked argument was sent.
    assert!(count("evil") == 0 && count("good") > 0 && count("denied") > 0, "{answer}");
    let received = session.run_code("python", "import mcp_tools\nmcp_tools.fixture.count()['echo']").await;
    assert_eq!(received["value"], count("good"), "{received}");
}

#[tokio::test]
async fn a_symbolic_link_out_of_a_permitted_folder_is_denied() {
    let lockhouse = Lockhouse::new();
    let folder = lockhouse.path("kept");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    std::fs::create_dir_all(lockhouse.path("other")).unwrap();
    std::os::unix::fs::symlink(lockhouse.path("other"), folder.join("out")).unwrap();
    std::os::unix::fs::symlink(lockhouse.path("nothing"), folder.join("dangling")).unwrap();
    let rule = format!(
        "[[servers.fixture.rules]]\ntool = \"text\"\nwhen = {{ text = {{ under = {folder:?} }} }}\neffect = \"allow\"\n"
    );
    let policy = format!("version = 1\n[servers.fixture]\nallow = [\"count\"]\n{rule}");
    let config = format!("[servers.fixture]\ncommand = {:?}\n", fixture_server());
    let lockhouse = lockhouse.policy(&policy).config(&config);
    let session = lockhouse.serve().await;
    let mut table = Table::new("paths below a folder with links");
    for (path, expected) in [
        ("kept/inner/file", "ok"),
        ("kept/new", "ok"),
        ("kept/out", "denied"),
        ("kept/out/file", "denied"),
        ("kept/dangling", "denied"),
        ("kept/inner/../../other/file", "denied"),
        ("other/file", "denied"),
    ] {
        let path = lockhouse.path("").join(path);
        let code = format!(
            "from mcp_tools import call_tool, ToolError\ntry: call_tool('fixture', 'text', {{'text': {path:?}}}); r = 'ok'\n\
             except ToolError as e: r = e.code\nr"
        );
        let answer = structured(session.call("run_code", json!({"language": "python", "code": code})).await);
        table.row(path.display().to_string(), equal(answer["value"].clone(), json!(expected)));
    }
    table.finish();
}
