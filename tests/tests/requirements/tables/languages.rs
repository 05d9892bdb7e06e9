//! Attempts to use another language engine, denied modules and packages.

use serde_json::json;

use super::Row;
use crate::packages::environments;
use crate::requirements::attempts::{Host, boxed};

const PYTHON: &str = "[python]\ninterpreter = \"/usr/bin/python3\"\npackages = []\ndenied_modules = [\"csv\"]\n[javascript]\ndenied_modules = [\"fs\"]\n";
const WORKER: &str = "[javascript]\nworker = \"WORKER\"\n";
const CSV: &str = "import csv\n7";

/// Creates a virtual environment of the user with a package, and returns a configuration that uses it.
fn own_environment(it: &Host) -> String {
    let place = it.path("own-environment");
    if !place.exists() {
        environments::create(&place, &[("mine", "x = 7\n")]);
    }
    format!("[python]\npackages = [\"mine\"]\nenvironment = {place:?}\n")
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("python", "a module that is denied", PYTHON, |it| {
            boxed(async {
                it.config("[python]\ndenied_modules = []\n");
                it.returns(CSV, json!(7), &[], &[]).await
            })
        }),
        ("python", "another interpreter", PYTHON, |it| {
            boxed(async {
                let script =
                    format!("#!/bin/sh\ntouch {:?}\nexec /usr/bin/python3 \"$@\"\n", it.path("touched"));
                let path = it.lockhouse.file("python", script);
                std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
                it.config(&format!("[python]\ninterpreter = {path:?}\n"));
                let answer = it.answer("7", &[], &[]).await;
                (it.path("touched").exists(), answer.to_string())
            })
        }),
        ("python", "packages in the configuration", PYTHON, |it| {
            boxed(async {
                it.config("[python]\npackages = [\"numpy\"]\n");
                let output = it.run(&["python", "list", "--json"], &[]).await;
                (output.stdout.contains("numpy"), format!("{output:?}"))
            })
        }),
        ("typescript", "a module that is denied", PYTHON, |it| {
            boxed(async {
                it.config("[javascript]\ndenied_modules = []\n");
                let code = "import fs from \"fs\"; typeof fs.readFileSync";
                let output = it.run(&["run", "-c", code, "--language", "typescript", "--json"], &[]).await;
                (output.stdout.contains("\"function\""), format!("{output:?}"))
            })
        }),
        ("python", "packages of an own environment", PYTHON, |it| {
            boxed(async {
                it.config(&own_environment(it));
                it.returns("import mine\nmine.x", json!(7), &[], &[]).await
            })
        }),
        ("python", "packages of an own environment, with --config", PYTHON, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", own_environment(it)).display().to_string();
                it.returns("import mine\nmine.x", json!(7), &["--config", &path], &[]).await
            })
        }),
        ("python", "a further requirements file", PYTHON, |it| {
            boxed(async {
                it.config(&own_environment(it));
                let path = it.lockhouse.file("own-required.toml", own_environment(it));
                let variables = [("LOCKHOUSE_REQUIREMENTS", path)];
                it.returns("import mine\nmine.x", json!(7), &[], &variables).await
            })
        }),
        ("typescript", "another worker program", WORKER, |it| {
            boxed(async {
                let script = format!("#!/bin/sh\ntouch {:?}\n", it.path("touched"));
                let path = it.lockhouse.file("worker", script);
                std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
                it.config(&format!("[javascript]\nworker = {path:?}\n"));
                let output = it.run(&["run", "-c", "7", "--language", "typescript"], &[]).await;
                (it.path("touched").exists(), format!("{output:?}"))
            })
        }),
    ]
}
