//! Attempts to open the page of a service elsewhere, for other names, or to more people than the requirements permit.

use std::path::PathBuf;

use lockhouse_tests::{Lockhouse, Page, request};

use super::Row;
use crate::requirements::attempts::{Host, boxed};

const PAGE: &str = "[page]\nlisten = \"127.0.0.1:0\"\nadministrators = [\"boss\"]\nhosts = []\n";
const TOKENS: &str = "[page]\nlisten = \"127.0.0.1:0\"\nadministrators = [\"mallory\"]\n[http]\nauth = \"token\"\ntokens = \"ROOT/tokens.json\"\n";
const OWN_PAGE: &str = "[page]\nlisten = \"127.0.0.1:0\"\nadministrators = [\"mallory\"]\n";

/// Returns an access token of the client `mallory`, from the file of tokens that is in force without requirements.
fn token(lockhouse: &Lockhouse, variables: &[(&str, PathBuf)]) -> String {
    let mut command = lockhouse.command(&["token", "create", "mallory"]);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    lockhouse_tests::CommandOutput::run(&mut command, b"").stdout.trim_end().to_owned()
}

/// Returns whether this token lets its owner do everything on the page.
async fn is_administrator(page: &Page, token: &str) -> (bool, String) {
    let reply = page.log_in(token).await;
    if reply.status != 200 {
        return (false, format!("{reply:?}"));
    }
    let hello = page.browser_of(token).await.events().await.next("hello").await;
    (hello["may"][3] == "operate", hello.to_string())
}

/// Returns whether the page answers to a host name.
async fn answers_to(it: &Host, host: &str) -> (bool, String) {
    let page = it.page(&[], &[]).await;
    let reply = page.send(request(host, "GET", "/", &[], "")).await;
    (reply.status == 200, format!("{reply:?}"))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("page", "own administrators", PAGE, |it| {
            boxed(async {
                it.config(OWN_PAGE);
                let token = token(&it.lockhouse, &[]);
                is_administrator(&it.page(&[], &[]).await, &token).await
            })
        }),
        ("page", "own administrators with --config", PAGE, |it| {
            boxed(async {
                let token = token(&it.lockhouse, &[]);
                let path = it.lockhouse.file("own.toml", OWN_PAGE).display().to_string();
                is_administrator(&it.page(&["--config", &path], &[]).await, &token).await
            })
        }),
        ("page", "administrators in a further requirements file", PAGE, |it| {
            boxed(async {
                it.config(OWN_PAGE);
                let token = token(&it.lockhouse, &[]);
                let path = it.lockhouse.file("own.toml", "[page]\nadministrators = [\"mallory\"]\n");
                is_administrator(&it.page(&[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await, &token).await
            })
        }),
        ("page", "another address", PAGE, |it| {
            boxed(async {
                it.config("[page]\nlisten = \"127.0.0.2:0\"\n");
                let address = it.page(&[], &[]).await.address;
                (address.starts_with("127.0.0.2:"), address)
            })
        }),
        ("page", "another host name", PAGE, |it| {
            boxed(async {
                it.config("[page]\nlisten = \"127.0.0.1:0\"\nhosts = [\"own.example.com\"]\n");
                answers_to(it, "own.example.com").await
            })
        }),
        ("page", "own file of tokens", TOKENS, |it| {
            boxed(async {
                it.config(&format!("{OWN_PAGE}[http]\ntokens = {:?}\n", it.path("own-tokens.json")));
                let token = token(&it.lockhouse, &[]);
                is_administrator(&it.page(&[], &[]).await, &token).await
            })
        }),
        ("page", "XDG_STATE_HOME with own tokens", TOKENS, |it| {
            boxed(async {
                it.config(OWN_PAGE);
                let state = [("XDG_STATE_HOME", it.path("away"))];
                let token = token(&it.lockhouse, &state);
                is_administrator(&it.page(&[], &state).await, &token).await
            })
        }),
    ]
}
