//! Attempts to write the audit log elsewhere, or with less in it.

use super::Row;
use crate::requirements::attempts::boxed;
use crate::requirements::{ADD, server};

const AUDIT: &str = "[audit]\ndirectory = \"ROOT/log\"\nvalues = true\ncode = true\nredact = []\n";

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("audit log", "another directory", AUDIT, |it| {
            boxed(async {
                it.config(&format!("[audit]\ndirectory = {:?}\n{}", it.path("away"), server("fixture")));
                let answer = it.answer(ADD, &[], &[]).await;
                (it.is_logged("away", "call"), answer.to_string())
            })
        }),
        ("audit log", "XDG_STATE_HOME", AUDIT, |it| {
            boxed(async {
                let answer = it.answer(ADD, &[], &[("XDG_STATE_HOME", it.path("away"))]).await;
                (it.is_logged("away/lockhouse/audit", "call"), answer.to_string())
            })
        }),
        ("audit log", "LOGS_DIRECTORY", AUDIT, |it| {
            boxed(async {
                std::fs::create_dir(it.path("away")).unwrap();
                let answer = it.answer(ADD, &[], &[("LOGS_DIRECTORY", it.path("away"))]).await;
                (it.is_logged("away", "call"), answer.to_string())
            })
        }),
        ("audit log", "a further requirements file", AUDIT, |it| {
            boxed(async {
                let text = format!("[audit]\ndirectory = {:?}\n", it.path("away"));
                let path = it.lockhouse.file("own.toml", text);
                let answer = it.answer(ADD, &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await;
                (it.is_logged("away", "call"), answer.to_string())
            })
        }),
        ("audit log", "no arguments in it", AUDIT, |it| {
            boxed(async {
                it.config(&format!(
                    "[audit]\ndirectory = {:?}\nvalues = false\n{}",
                    it.path("log"),
                    server("fixture")
                ));
                let answer = it.answer(ADD, &[], &[]).await;
                let has = it.is_logged("log", "\"a\":40");
                (it.is_logged("log", "call") && !has, answer.to_string())
            })
        }),
        ("audit log", "every argument is redacted", AUDIT, |it| {
            boxed(async {
                let text =
                    format!("[audit]\ndirectory = {:?}\nvalues = true\nredact = [\"*\"]\n", it.path("log"));
                it.config(&(text + &server("fixture")));
                let answer = it.answer(ADD, &[], &[]).await;
                (it.is_logged("log", "call") && !it.is_logged("log", "\"a\":40"), answer.to_string())
            })
        }),
        ("audit log", "no code in it", AUDIT, |it| {
            boxed(async {
                it.config(&format!(
                    "[audit]\ndirectory = {:?}\ncode = false\n{}",
                    it.path("log"),
                    server("fixture")
                ));
                let answer = it.answer(ADD, &[], &[]).await;
                (it.is_logged("log", "call") && !it.is_logged("log", "import add"), answer.to_string())
            })
        }),
    ]
}
