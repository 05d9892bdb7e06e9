//! Attempts to run code while the administrator has stopped Lockhouse.

use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;

const STOP: &str = "stop = \"incident 7\"\n";

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("stop", "lockhouse run", STOP, |it| boxed(async { it.returns("7", json!(7), &[], &[]).await })),
        ("stop", "--config", STOP, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "").display().to_string();
                it.returns("7", json!(7), &["--config", &path], &[]).await
            })
        }),
        ("stop", "HOME", STOP, |it| {
            boxed(async {
                let away = it.path("away");
                std::fs::create_dir(&away).unwrap();
                let names =
                    ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];
                let variables = names.map(|name| (name, away.clone()));
                it.returns("7", json!(7), &[], &variables).await
            })
        }),
        ("stop", "a further requirements file", STOP, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "");
                it.returns("7", json!(7), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
        ("stop", "the file in /etc as the further one", STOP, |it| {
            boxed(async {
                std::fs::write(it.path("etc/empty"), "").unwrap();
                let name = "/etc/lockhouse/../empty";
                it.returns("7", json!(7), &[], &[("LOCKHOUSE_REQUIREMENTS", name.into())]).await
            })
        }),
        ("stop", "a server is tested", STOP, |it| {
            boxed(async {
                let output = it.run(&["server", "test", "fixture"], &[]).await;
                (output.status == Some(0), format!("{output:?}"))
            })
        }),
        ("stop", "a program is checked", STOP, |it| {
            boxed(async {
                let output = it.run(&["check", "-c", "7", "--language", "python"], &[]).await;
                (output.status == Some(0), format!("{output:?}"))
            })
        }),
    ]
}
