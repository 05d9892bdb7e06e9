//! Attempts to serve AI clients over HTTP at another address, or without the authentication that the requirements demand.

use lockhouse_tests::{Daemon, wait_until};
use serde_json::json;

use super::Row;
use crate::requirements::attempts::{Host, boxed};

const HTTP: &str = "[http]\nlisten = [\"127.0.0.1:0\"]\nauth = \"token\"\ntokens = \"ROOT/tokens.json\"\n";

/// Returns whether a client without a token can run code.
async fn admits_anybody(it: &Host, options: &[&str]) -> (bool, String) {
    let arguments = [&["serve", "--http"], options].concat();
    let daemon = Daemon::open(it.command(&arguments, &[])).await;
    let client = daemon.http_client(None);
    let code = json!({"language": "python", "code": "7"});
    let reply = client.post(&client.calling("run_code", code)).await;
    (reply.answer()["result"]["structuredContent"]["value"] == 7, format!("{reply:?}"))
}

pub(super) fn rows() -> Vec<Row> {
    const OPEN: &str = "[http]\nlisten = [\"127.0.0.1:0\"]\nauth = \"none\"\n";
    vec![
        ("http", "no authentication", HTTP, |it| {
            boxed(async {
                it.config(OPEN);
                admits_anybody(it, &[]).await
            })
        }),
        ("http", "no authentication with --config", HTTP, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", OPEN).display().to_string();
                admits_anybody(it, &["--config", &path]).await
            })
        }),
        ("http", "an own file of tokens", HTTP, |it| {
            boxed(async {
                it.config(&format!(
                    "[http]\nlisten = [\"127.0.0.1:0\"]\ntokens = {:?}\n",
                    it.path("own.json")
                ));
                let token = it.lockhouse.run(&["token", "create", "mallory"]).stdout.trim_end().to_owned();
                let daemon = Daemon::open(it.command(&["serve", "--http"], &[])).await;
                let client = daemon.http_client(Some(&token));
                let reply = client.post(&client.calling("health", json!({}))).await;
                (reply.status == 200, format!("{reply:?}"))
            })
        }),
        ("http", "--listen", HTTP, |it| {
            boxed(async {
                let socket = it.path("own.sock");
                let address = format!("unix:{}", socket.display());
                let command = it.command(&["serve", "--listen", &address], &[]);
                let mut command = tokio::process::Command::from(command);
                command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
                let mut serving = command.kill_on_drop(true).spawn().unwrap();
                let listens = wait_until("it listens or has ended", async || {
                    let has_ended = serving.try_wait().unwrap().is_some();
                    (has_ended || socket.exists()).then_some(!has_ended)
                });
                (listens.await, String::new())
            })
        }),
    ]
}
