//! Attempts to use a server that the requirements do not admit.

use lockhouse_tests::fixture_server;
use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;
use crate::requirements::{ADD, server};

const APPROVED: &str = "[[approved]]\nname = \"fixture\"\ncommand = \"PROGRAM\"\n";
const DENIED: &str = "[[denied]]\nname = \"other\"\n[[denied]]\ncommand = \"ROOT/server\"\n";

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("servers", "in the configuration", DENIED, |it| {
            boxed(async {
                it.config(&server("other"));
                it.lists("other", &[], &[]).await
            })
        }),
        ("servers", "--config", DENIED, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", server("other")).display().to_string();
                it.lists("other", &["--config", &path], &[]).await
            })
        }),
        ("servers", "XDG_CONFIG_HOME", DENIED, |it| {
            boxed(async {
                it.lockhouse.file("away/lockhouse/config.toml", server("other"));
                it.lists("other", &[], &[("XDG_CONFIG_HOME", it.path("away"))]).await
            })
        }),
        ("servers", "HOME", DENIED, |it| {
            boxed(async {
                it.lockhouse.file("away/.config/lockhouse/config.toml", server("other"));
                let variables = [("HOME", it.path("away")), ("XDG_CONFIG_HOME", it.path("away/.config"))];
                it.lists("other", &[], &variables).await
            })
        }),
        ("servers", "--servers", DENIED, |it| {
            boxed(async {
                let text = json!({"mcpServers": {"other": {"command": fixture_server()}}}).to_string();
                let path = it.lockhouse.file("own.json", text).display().to_string();
                it.lists("other", &["--servers", &path], &[]).await
            })
        }),
        ("servers", "servers_files", DENIED, |it| {
            boxed(async {
                let text = json!({"mcpServers": {"other": {"command": fixture_server()}}}).to_string();
                it.config(&format!("servers_files = [{:?}]\n", it.lockhouse.file("own.json", text)));
                it.lists("other", &[], &[]).await
            })
        }),
        ("servers", "another spelling of a denied name", DENIED, |it| {
            boxed(async {
                it.config(&server("OTHER"));
                it.lists("OTHER", &[], &[]).await
            })
        }),
        ("servers", "another name for a denied program", DENIED, |it| {
            boxed(async {
                std::fs::copy(fixture_server(), it.path("server")).unwrap();
                it.config(&format!("[servers.mine]\ncommand = {:?}\n", it.path("server")));
                it.lists("mine", &[], &[]).await
            })
        }),
        ("servers", "a link to a denied program", DENIED, |it| {
            boxed(async {
                std::fs::copy(fixture_server(), it.path("server")).unwrap();
                std::os::unix::fs::symlink(it.path("server"), it.path("link")).unwrap();
                it.config(&format!("[servers.mine]\ncommand = {:?}\n", it.path("link")));
                it.lists("mine", &[], &[]).await
            })
        }),
        ("servers", "another program with an approved name", APPROVED, |it| {
            boxed(async {
                it.config("[servers.fixture]\ncommand = \"/bin/cat\"\n");
                it.lists("fixture", &[], &[]).await
            })
        }),
        ("servers", "LD_PRELOAD for an approved program", APPROVED, |it| {
            boxed(async {
                it.config(&format!("{}env = {{LD_PRELOAD = \"/tmp/x.so\"}}\n", server("fixture")));
                it.lists("fixture", &[], &[]).await
            })
        }),
        ("servers", "another directory for an approved program", APPROVED, |it| {
            boxed(async {
                it.config(&format!("{}cwd = \"/tmp\"\n", server("fixture")));
                it.lists("fixture", &[], &[]).await
            })
        }),
        (
            "servers",
            "an own definition of a fixed server",
            "[servers.fixture]\ncommand = \"PROGRAM\"\n",
            |it| {
                boxed(async {
                    let notes = it.path("notes");
                    let flag = format!("--notes={}", notes.display());
                    it.config(&format!("{}args = [{flag:?}]\n", server("fixture")));
                    let answer = it.answer(ADD, &[], &[]).await;
                    (notes.exists(), answer.to_string())
                })
            },
        ),
        ("servers", "a further requirements file that fixes it", DENIED, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", server("other"));
                it.lists("other", &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}
