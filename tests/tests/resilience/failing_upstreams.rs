//! Tests of upstream servers that fail to start, and of call results that are too large.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, fixture_server};
use serde_json::json;

const POLICY: &str = "version = 1\n[servers.good]\nallow = [\"*\"]\n[servers.bad]\nallow = [\"*\"]\n";

fn configured(flag: &str, start_timeout: u32) -> Lockhouse {
    let program = fixture_server();
    let config = format!(
        "[servers.good]\ncommand = {program:?}\n\n[servers.bad]\ncommand = {program:?}\nargs = [{flag:?}]\nstart_timeout_seconds = {start_timeout}\n"
    );
    Lockhouse::new().config(&config).policy(POLICY)
}

#[tokio::test]
async fn a_server_that_does_not_start_is_reported_and_delays_no_other() {
    let rows = [
        ("--fail-start", "ended before it was ready (exit status: 3)"),
        ("--hang-start", "start_timeout_seconds"),
    ];
    let mut table = Table::new("servers that do not start");
    for (flag, words) in rows {
        let lockhouse = configured(flag, 1);
        let session = lockhouse.serve().await;
        let good = session.run_code("python", "from mcp_tools.good import add\nadd(a=1, b=2)['sum']").await;
        table.row(format!("{flag}: the other works"), equal(good["value"].clone(), json!(3)));
        let programs = [
            (
                "python",
                "from mcp_tools import ToolError\nfrom mcp_tools import call_tool\ntry: call_tool('bad', 'add', {'a': 1, 'b': 2})\nexcept ToolError as e: r = [e.code, e.message]\nr",
            ),
            ("typescript", "try { await bad.add({a: 1, b: 2}) } catch (e) { return [e.code, e.message] }"),
        ];
        for (language, code) in programs {
            let answer = session.run_code(language, code).await;
            let value = &answer["value"];
            let told = value[1].as_str().is_some_and(|told| told.contains("bad"));
            table.row(
                format!("{flag}: {language}"),
                ensure(value[0] == "upstream_unavailable" && told, &answer),
            );
        }
        let reason = lockhouse_tests::wait_until("the attempt fails", async || {
            let servers = session
                .run_code(
                    "python",
                    "from mcp_tools import list_servers\n{s['name']: s for s in list_servers()}",
                )
                .await;
            (servers["value"]["bad"]["state"] == "failed")
                .then(|| servers["value"]["bad"]["error"].to_string())
        })
        .await;
        table.row(format!("{flag}: the reason is listed"), ensure(reason.contains(words), reason));
        let found = session.search_tools("add").await;
        let finds = found["tools"][0]["server"] == "good" && found["unavailable"].to_string().contains("bad");
        table.row(format!("{flag}: search_tools"), ensure(finds, &found));
        let ended = session.close().await;
        table.row(format!("{flag}: it ends"), ensure(ended.status == Some(0), ended));
    }
    table.finish();
}

#[tokio::test]
async fn a_starting_server_delays_only_calls_to_it() {
    let lockhouse = configured("--hang-start", 600);
    let session = lockhouse.serve().await;
    let code = "from mcp_tools import list_servers\nfrom mcp_tools.good import add\n[add(a=1, b=2)['sum'], {s['name']: s['state'] for s in list_servers()}['bad']]";
    let answer = session.run_code("python", code).await;
    assert_eq!(answer["value"], json!([3, "connecting"]), "{answer}");
}

#[tokio::test]
async fn servers_of_every_protocol_era_work() {
    let mut table = Table::new("servers by their handshake");
    for flag in ["--legacy-only", "--crash-on-discover", "--one-era"] {
        let lockhouse = Lockhouse::new().server("good", &[flag]).policy(POLICY);
        let session = lockhouse.serve().await;
        for (language, code) in [
            ("python", "from mcp_tools.good import add\nadd(a=1, b=2)['sum']"),
            ("typescript", "(await good.add({a: 1, b: 2})).sum"),
        ] {
            let answer = session.run_code(language, code).await;
            table.row(format!("{flag}: {language}"), ensure(answer["value"] == 3, answer));
        }
        let again = "from mcp_tools.good import add, crash\ntry: crash()\nexcept Exception: pass\nadd(a=1, b=2)['sum']";
        let answer = session.run_code("python", again).await;
        table.row(format!("{flag}: once more after it crashed"), ensure(answer["value"] == 3, answer));
    }
    table.finish();
}

#[test]
fn a_command_that_is_not_an_mcp_server_is_reported_by_name() {
    for (command, words) in
        [("/nonexistent/server", "/nonexistent/server"), ("/bin/true", "broken"), ("/bin/cat", "broken")]
    {
        let config = format!("[servers.broken]\ncommand = {command:?}\nstart_timeout_seconds = 1\n");
        let finished = Lockhouse::new().config(&config).run(&["tools", "list"]);
        assert!(finished.stderr.contains(words) && !finished.stderr.contains("panicked"), "{finished:?}");
    }
}

#[tokio::test]
async fn an_oversized_result_fails_only_its_own_call() {
    let lockhouse = Lockhouse::with_fixture().config("[limits]\nframe_kib = 1024\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("results beyond 1024 KiB");
    // A result below the limit, one above it, and one above the maximum length of a line from a server.
    for (bytes, fits) in [(900_000, true), (1_100_000, false), (2_900_000, false), (20_000_000, false)] {
        let programs = [
            (
                "python",
                format!(
                    "from mcp_tools.fixture import big, add\nfrom mcp_tools import ToolError\ntry: r = len(big(bytes={bytes}))\n\
                except ToolError as e: r = e.code\n[r, add(a=1, b=2)['sum']]"
                ),
            ),
            (
                "typescript",
                format!(
                    "let r; try {{ r = (await fixture.big({{bytes: {bytes}}})).length }} catch (e) {{ r = e.code }}\n\
                return [r, (await fixture.add({{a: 1, b: 2}})).sum]"
                ),
            ),
        ];
        let expected = if fits { json!([bytes, 3]) } else { json!(["result_too_large", 3]) };
        for (language, code) in programs {
            let answer = session.run_code(language, &code).await;
            let outcome = equal(answer["value"].clone(), expected.clone());
            table.row(
                format!("{language}: {bytes} bytes"),
                outcome.map_err(|e| format!("{e} {}", answer["error"])),
            );
        }
    }
    table.finish();
}

#[test]
fn a_server_gets_only_its_configured_environment() {
    let entry = json!({"command": fixture_server(), "env": {"GIVEN": "yes"}});
    let lockhouse = Lockhouse::new().servers_entry("good", entry).policy(POLICY);
    let code = "from mcp_tools.good import env\nenv()";
    let mut command = lockhouse.command(&["run", "-c", code, "--language", "python", "--json"]);
    let answer = lockhouse_tests::CommandOutput::run(command.env("MY_TOKEN", "hunter2"), b"").json();
    assert_eq!(answer["value"]["GIVEN"], "yes", "{answer}");
    assert!(answer["value"]["PATH"].is_string() && !answer.to_string().contains("hunter2"), "{answer}");
}
