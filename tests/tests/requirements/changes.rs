//! Tests that a change of the requirements is applied to a running process, and recorded.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, is_alive, wait_until};
use serde_json::{Value, json};

use super::{ADD, error_of, lockhouse, require, serve, server};

/// Replaces the requirements, and waits until the process has applied them.
async fn apply(lockhouse: &Lockhouse, requirements: &str) {
    let count = || applications(lockhouse).len();
    let before = count();
    require(lockhouse, requirements);
    wait_until("the requirements apply", async || (count() > before).then_some(())).await;
}

/// Returns the audit records of reloads.
fn applications(lockhouse: &Lockhouse) -> Vec<Value> {
    lockhouse.records().into_iter().filter(|record| record["event"] == "reload").collect()
}

fn is_ok(answer: &Value) -> bool {
    answer["status"] == "ok"
}

#[tokio::test]
async fn a_change_is_applied_to_what_the_users_files_said_and_recorded() {
    let lockhouse = lockhouse();
    require(&lockhouse, "");
    let session = serve(&lockhouse).await;
    let mut table = Table::new("changes of the requirements of a running process");
    table.row("control", ensure(is_ok(&session.run_code("python", ADD).await), session.log()));
    let rows = [
        ("a denied server", "[[denied]]\nname = \"fix*\"\n".to_owned(), false),
        ("lifted", "# nothing\n".into(), true),
        ("no server is approved", "approved = []\n".into(), false),
        ("lifted again", String::new(), true),
        ("another list of servers", server("other"), false),
        ("the list has it", server("fixture"), true),
        ("the same size, at once", server("fixturf"), false),
        ("and back", server("fixture"), true),
        ("direct only", "expose = \"direct\"\n".into(), false),
        ("for code", "expose = \"code\"\n".into(), true),
        ("variables of servers", "[servers.\"*\"]\nenv = []\n".into(), true),
        ("a required policy", policy(&lockhouse, "deny", "deny = [\"add\"]\n"), false),
        ("another one", policy(&lockhouse, "allow", "allow = [\"*\"]\n"), true),
    ];
    let count = rows.len();
    for (what, requirements, expected) in rows {
        apply(&lockhouse, &requirements).await;
        let answer = session.run_code("python", ADD).await;
        table.row(what, ensure(is_ok(&answer) == expected, &answer));
    }
    // The file of the required policy changes, and not the one that names it.
    policy(&lockhouse, "allow", "deny = [\"add\"]\n");
    let answer = wait_until("it applies", async || {
        Some(session.run_code("python", ADD).await).filter(|answer| !is_ok(answer))
    });
    let answer = answer.await;
    table.row("what the required policy says", ensure(answer["error"]["code"] == "denied", &answer));
    let reloads = applications(&lockhouse);
    let causes: Vec<&Value> = reloads.iter().map(|record| &record["cause"]).collect();
    table.row("each is recorded", equal(causes, vec![&json!("requirements"); count + 1]));
    // The second application lifted what the first one had required.
    let digests: Vec<_> = reloads.iter().take(2).map(|record| &record["requirements"]).collect();
    table.row("with the SHA-256", ensure(digests[0].is_string() && digests[0] != digests[1], &digests));
    let status = lockhouse.run(&["status", "--json"]).json();
    let last = &reloads[count]["requirements"];
    table.row("the status has the newest one", equal(&status[0]["configuration"]["requirements"], last));
    table.finish();
    session.close().await;
}

/// Writes a policy of the administrator, and returns the requirements that name it.
fn policy(lockhouse: &Lockhouse, name: &str, rules: &str) -> String {
    let text = format!("version = 1\n[servers.fixture]\n{rules}");
    let path = lockhouse.file(&format!("etc/lockhouse/{name}.toml"), text);
    format!("policy = {path:?}\n")
}

#[tokio::test]
async fn a_run_that_began_before_cannot_call_what_is_not_permitted_any_more() {
    let lockhouse = lockhouse();
    require(&lockhouse, "");
    let session = serve(&lockhouse).await;
    let code = "import time\nfrom mcp_tools import ToolError\nfrom fixture import add\nfor second in range(100):\n    try:\n        add(a=1, b=2)\n    except ToolError as error:\n        refused = [error.code, error.message]\n        break\n    time.sleep(0.05)\nrefused";
    let running = session.start_code("python", code);
    wait_until("the program calls", async || (!lockhouse.audit().is_empty()).then_some(())).await;
    require(&lockhouse, "[[denied]]\nname = \"fixture\"\n");
    let answer = lockhouse_tests::structured(running.await.unwrap());
    let expected = "the administrator's requirements do not permit the server fixture any more";
    let mut table = Table::new("a run that began before");
    table.row("its next call is refused", equal(&answer["value"], &json!(["denied", expected])));
    table.finish();
    session.close().await;
}

/// The requirements take a root of the built-in server `files` away while a run uses it.
#[tokio::test]
async fn a_run_that_began_before_opens_no_file_that_is_not_granted_any_more() {
    let lockhouse = Lockhouse::new().policy("version = 1\n[servers.files]\nallow = [\"*\"]\n");
    // A program keeps what it has read, so it reads each file once.
    for number in 0..200 {
        lockhouse.file(&format!("shared/{number}"), "x");
    }
    let (shared, kept) = (lockhouse.path("shared"), lockhouse.file("kept/text", "y"));
    let lockhouse = lockhouse.config(&format!("[servers.files]\nread = [{shared:?}, {kept:?}]\n"));
    require(&lockhouse, "");
    let session = serve(&lockhouse).await;
    let code = format!(
        "import time\nrefused = None\nfor number in range(200):\n    try:\n        open({shared:?} + \"/\" + str(number)).read()\n    except OSError as error:\n        refused = [number, str(error)]\n        break\n    time.sleep(0.05)\nrefused"
    );
    let running = session.start_code("python", &code);
    wait_until("the program reads", async || (lockhouse.audit().len() > 2).then_some(())).await;
    require(&lockhouse, &format!("[servers.files]\nread = [{kept:?}]\n"));
    let answer = lockhouse_tests::structured(running.await.unwrap());
    let mut table = Table::new("a root of the server files that was taken away");
    let read_before = answer["value"][0].as_u64().unwrap_or_default();
    table.row("the run that began before", ensure(read_before > 1, &answer));
    let read = async |path: &std::path::Path| {
        session.run_code("python", &format!("open({path:?}).read()")).await["value"].clone()
    };
    table.row("a new run", equal(read(&shared.join("0")).await, Value::Null));
    table.row("control: what is still granted", equal(read(&kept).await, json!("y")));
    table.finish();
    session.close().await;
}

#[tokio::test]
async fn what_cannot_be_applied_stops_the_process_with_the_reason() {
    let mut table = Table::new("requirements that a running process cannot apply");
    let rows = [
        ("not TOML", "[[denied]\n", "cannot be used"),
        ("an unknown key", "[allowed]\n", "cannot be used"),
        ("an empty reason", "stop = \" \"\n", "cannot be used"),
        ("a missing policy", "policy = \"/nonexistent/policy.toml\"\n", "cannot be used"),
        ("limits", "[limits]\ncalls = 3\n", "changed in [limits]"),
        ("the audit log", "[audit]\nvalues = true\n", "changed in [audit]"),
        ("the interpreter", "[python]\ndenied_modules = [\"json\"]\n", "changed in [python]"),
        ("sharing", "[sharing]\nidle_seconds = 7\n", "changed in [sharing]"),
        ("every protection", "sandbox = \"required\"\n", "changed in [pool]"),
        ("out of range", "[limits]\nmemory_mib = 1\n", "cannot be used"),
        ("a relative path", "[audit]\ndirectory = \"x\"\n", "cannot be used"),
    ];
    let tried = rows.map(|(what, requirements, words)| {
        Box::pin(async move {
            let lockhouse = lockhouse();
            require(&lockhouse, "");
            let session = serve(&lockhouse).await;
            let running = session.start_code("python", "import time\ntime.sleep(30)");
            wait_until("it runs", async || {
                let runs = lockhouse.run(&["runs", "list", "--json"]).json();
                (runs[0]["state"] == "running").then_some(())
            })
            .await;
            require(&lockhouse, requirements);
            let answer = running.await.unwrap().ok().and_then(|result| result.structured_content);
            let answer = answer.unwrap_or_default();
            let pid = session.pid();
            wait_until("it ends", async || (!is_alive(pid)).then_some(())).await;
            let refused = lockhouse.records().iter().any(|record| {
                record["event"] == "reload"
                    && record["cause"] == "requirements"
                    && record["outcome"] == "refused"
            });
            let ended = session.close().await;
            let told = ended.stderr.contains(words)
                && error_of(&answer).contains("administrator's requirements changed");
            (what, ensure(told && refused && ended.status == Some(8), format!("{ended:?} {answer}")))
        })
    });
    for (what, outcome) in futures_util::future::join_all(tried).await {
        table.row(what, outcome);
    }
    table.finish();
}

/// A key that is left out again needs no restart: the process keeps the stricter value.
#[tokio::test]
async fn what_the_process_meets_already_does_not_stop_it() {
    let lockhouse = lockhouse();
    require(&lockhouse, "[limits]\ncalls = 3\n[audit]\nvalues = true\n");
    let session = serve(&lockhouse).await;
    let mut table = Table::new("changes that a running process meets already");
    for (what, requirements) in [
        ("fewer keys", "[limits]\ncalls = 3\n"),
        ("none", ""),
        ("the same ones again", "[limits]\ncalls = 3\n[audit]\nvalues = true\n"),
    ] {
        apply(&lockhouse, requirements).await;
        table.row(what, ensure(is_ok(&session.run_code("python", ADD).await), session.log()));
    }
    table.finish();
    session.close().await;
}
