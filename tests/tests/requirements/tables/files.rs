//! Attempts to use files of the host that the requirements do not grant.

use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;

const FILES: &str = "[servers.files]\nread = [\"ROOT/public\"]\n";
const READ: &str = "open(\"PATH\").read()";

pub(super) fn rows() -> Vec<Row> {
    const ALLOWS: &str = "version = 1\n[servers.files]\nallow = [\"*\"]\n";
    vec![
        ("server files", "own roots", FILES, |it| {
            boxed(async {
                it.lockhouse.file("secret/text", "x");
                it.policy(ALLOWS);
                it.config(&format!("[servers.files]\nread = [{:?}]\n", it.path("secret")));
                let code = READ.replace("PATH", &it.path("secret/text").display().to_string());
                it.returns(&code, json!("x"), &[], &[]).await
            })
        }),
        ("server files", "a further requirements file", FILES, |it| {
            boxed(async {
                it.lockhouse.file("secret/text", "x");
                it.policy(ALLOWS);
                let path = it
                    .lockhouse
                    .file("own.toml", format!("[servers.files]\nread = [{:?}]\n", it.path("secret")));
                let code = READ.replace("PATH", &it.path("secret/text").display().to_string());
                it.returns(&code, json!("x"), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
        ("server files", "files that may be written", FILES, |it| {
            boxed(async {
                std::fs::create_dir(it.path("secret")).unwrap();
                it.policy(ALLOWS);
                it.config(&format!("[servers.files]\nwrite = [{:?}]\n", it.path("secret")));
                let path = it.path("secret/text").display().to_string();
                let answer = it.answer(&format!("open({path:?}, \"w\").write(\"x\")"), &[], &[]).await;
                (it.path("secret/text").exists(), answer.to_string())
            })
        }),
        ("server files", "it is turned off for all", "[servers.files]\nread = []\n", |it| {
            boxed(async {
                it.lockhouse.file("secret/text", "x");
                it.policy(ALLOWS);
                it.config(&format!("[servers.files]\nread = [{:?}]\n", it.path("secret")));
                let code = READ.replace("PATH", &it.path("secret/text").display().to_string());
                it.returns(&code, json!("x"), &[], &[]).await
            })
        }),
    ]
}
