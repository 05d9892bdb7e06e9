//! The table of attempts of a user on a managed host: each one fails, and succeeds on a host without requirements.

use lockhouse_tests::{Table, ensure, fixture_server};
use serde_json::json;

use super::attempts::{Attempt, boxed, try_both};
use super::{ADD, can_mount, server};

const APPROVED: &str = "[[approved]]\nname = \"fixture\"\ncommand = \"PROGRAM\"\n";
const DENIED: &str = "[[denied]]\nname = \"other\"\n[[denied]]\ncommand = \"ROOT/server\"\n";
const POLICY: &str = "policy = \"ROOT/etc/lockhouse/policy.toml\"\n";
const CODE_ONLY: &str = "expose = \"code\"\n";
const LIMITS: &str = "[limits]\ncalls = 2\ntimeout_seconds = 1\n";
const AUDIT: &str = "[audit]\ndirectory = \"ROOT/log\"\nvalues = true\ncode = true\nredact = []\n";
const PYTHON: &str = "[python]\ninterpreter = \"/usr/bin/python3\"\npackages = []\ndenied_modules = [\"csv\"]\n[javascript]\ndenied_modules = [\"fs\"]\n";
const FILES: &str = "[servers.files]\nread = [\"ROOT/public\"]\n";
const EVERY: &str = "[servers.\"*\"]\nenv = [\"LANG\"]\nexpose = \"code\"\ndisabled_tools = [\"add\"]\n";
const STOP: &str = "stop = \"incident 7\"\n";

/// A program that calls the server three times.
const THREE_CALLS: &str = "from fixture import add\n[add(a=i, b=0)[\"sum\"] for i in range(3)]";
const SLOW: &str = "import time\ntime.sleep(1.5)\n7";
const CSV: &str = "import csv\n7";
const READ: &str = "open(\"PATH\").read()";

fn attempts() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
    [servers(), policies(), exposure(), limits(), audit(), languages(), files(), every_server(), stop()]
        .concat()
}

fn servers() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
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

fn policies() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
    vec![
        ("policy", "the own policy allows it", POLICY, |it| {
            boxed(async { it.returns(ADD, json!(42), &[], &[]).await })
        }),
        ("policy", "--policy", POLICY, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", super::ALLOW).display().to_string();
                it.returns(ADD, json!(42), &["--policy", &path], &[]).await
            })
        }),
        ("policy", "XDG_CONFIG_HOME", POLICY, |it| {
            boxed(async {
                it.lockhouse.file("away/lockhouse/config.toml", server("fixture"));
                it.lockhouse.file("away/lockhouse/policy.toml", super::ALLOW);
                it.returns(ADD, json!(42), &[], &[("XDG_CONFIG_HOME", it.path("away"))]).await
            })
        }),
        ("policy", "lockhouse policy allow", POLICY, |it| {
            boxed(async {
                it.policy("version = 1\n");
                let output = it.run(&["policy", "allow", "fixture.add", "--unknown"], &[]).await;
                let (is_done, answer) = it.returns(ADD, json!(42), &[], &[]).await;
                (is_done, format!("{output:?} {answer}"))
            })
        }),
        ("policy", "an empty further requirements file", POLICY, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "");
                it.returns(ADD, json!(42), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
        ("policy", "a further policy that allows it", POLICY, |it| {
            boxed(async {
                let policy = it.lockhouse.file("allow.toml", super::ALLOW);
                let path = it.lockhouse.file("own.toml", format!("policy = {policy:?}\n"));
                it.returns(ADD, json!(42), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}

fn exposure() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
    const WAITS: &str = "[catalogue]\nfirst_list_seconds = 20\n";
    vec![
        ("exposure", "--expose direct", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                it.shows_tool("fixture__add", &["--expose", "direct"], &[]).await
            })
        }),
        ("exposure", "--expose both", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                it.shows_tool("fixture__add", &["--expose", "both"], &[]).await
            })
        }),
        ("exposure", "expose of the server", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}expose = \"direct\"\n", server("fixture")));
                it.shows_tool("fixture__add", &[], &[]).await
            })
        }),
        ("exposure", "a further requirements file", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                let path = it.lockhouse.file("own.toml", "expose = \"both\"\n");
                it.shows_tool("fixture__add", &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}

fn limits() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
    vec![
        ("limits", "the default of the configuration", LIMITS, |it| {
            boxed(async { it.returns(THREE_CALLS, json!([0, 1, 2]), &[], &[]).await })
        }),
        ("limits", "calls in the configuration", LIMITS, |it| {
            boxed(async {
                it.config(&format!("[limits]\ncalls = 100\n{}", server("fixture")));
                it.returns(THREE_CALLS, json!([0, 1, 2]), &[], &[]).await
            })
        }),
        ("limits", "--config", LIMITS, |it| {
            boxed(async {
                let text = format!("[limits]\ncalls = 100\ntimeout_seconds = 100\n{}", server("fixture"));
                let path = it.lockhouse.file("own.toml", text).display().to_string();
                it.returns(THREE_CALLS, json!([0, 1, 2]), &["--config", &path], &[]).await
            })
        }),
        ("limits", "--timeout", LIMITS, |it| {
            boxed(async { it.returns(SLOW, json!(7), &["--timeout", "20"], &[]).await })
        }),
        ("limits", "a further requirements file", LIMITS, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "[limits]\ntimeout_seconds = 100\ncalls = 100\n");
                it.returns(SLOW, json!(7), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}

fn audit() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
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

fn languages() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
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
    ]
}

fn files() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
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

fn every_server() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
    vec![
        ("every server", "a variable that none may set", EVERY, |it| {
            boxed(async {
                it.config(&format!("{}env = {{LD_PRELOAD = \"/tmp/x.so\"}}\n", server("fixture")));
                it.lists("fixture", &[], &[]).await
            })
        }),
        ("every server", "a tool that none may offer", EVERY, |it| {
            boxed(async { it.returns(ADD, json!(42), &[], &[]).await })
        }),
        ("every server", "enabled_tools", EVERY, |it| {
            boxed(async {
                it.config(&format!("{}enabled_tools = [\"add\"]\n", server("fixture")));
                it.returns(ADD, json!(42), &[], &[]).await
            })
        }),
        ("every server", "expose", EVERY, |it| {
            boxed(async {
                let waits = "[catalogue]\nfirst_list_seconds = 20\n";
                it.config(&format!("{waits}{}expose = \"direct\"\n", server("fixture")));
                it.shows_tool("fixture__count", &[], &[]).await
            })
        }),
    ]
}

fn stop() -> Vec<(&'static str, &'static str, &'static str, Attempt)> {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attempt_of_a_user_lifts_requirements() {
    if !can_mount() {
        return;
    }
    let mut table =
        Table::new("attempts on a managed host, each with a control on a host without requirements");
    let attempts = attempts();
    for part in attempts.chunks(6) {
        let tried = part.iter().map(|(kind, what, requirements, attempt)| async move {
            let program = fixture_server().display().to_string();
            let outcome = Box::pin(try_both(&requirements.replace("PROGRAM", &program), *attempt)).await;
            (format!("{kind}: {what}"), outcome)
        });
        for (what, [required, free]) in futures_util::future::join_all(tried).await {
            table.row(format!("{what}: it fails"), ensure(!required.0, required.1));
            table.row(format!("{what}: control"), ensure(free.0, free.1));
        }
    }
    table.finish();
}
