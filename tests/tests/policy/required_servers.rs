//! Tests of servers that an administrator's requirements fix or approve: neither the environment of the user nor a change of
//! the program after the check decides which code they run and who reads their tokens.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{
    CommandOutput, HttpAnswer, HttpRequest, HttpServer, Lockhouse, Session, Table, ensure, equal,
    fixture_server,
};
use serde_json::{Value, json};

use super::requirements::sha256;

const POLICY: &str = "version = 1\n[servers.good]\nallow = [\"*\"]\n";

fn script(lockhouse: &Lockhouse, name: &str, text: &str) -> PathBuf {
    let path = lockhouse.file(name, text);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Returns a command of Lockhouse with the requirements file, if there is one, and with a `PATH` that finds another `sh`
/// first, which leaves a mark.
fn command(lockhouse: &Lockhouse, arguments: &[&str]) -> Command {
    let mark = lockhouse.path("mark").display().to_string();
    script(lockhouse, "planted/sh", &format!("#!/bin/sh\necho > {mark}\nexec /bin/sh \"$@\"\n"));
    let mut command = lockhouse.command(arguments);
    let planted = lockhouse.path("planted").display().to_string();
    let path = format!("{planted}:{}", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("LANG", "C.UTF-8").env("TZ", "UTC+5").env("TERM", "xterm");
    if lockhouse.path("requirements.toml").exists() {
        command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml"));
    }
    command
}

fn list(lockhouse: &Lockhouse) -> CommandOutput {
    CommandOutput::run(&mut command(lockhouse, &["tools", "list"]), b"")
}

#[test]
fn the_users_environment_does_not_reach_a_required_server() {
    let mut table = Table::new("the environment of a server, and the interpreter of its script");
    let usual = ["HOME", "LANG", "LOCKHOUSE_UPSTREAM", "PATH"];
    let ignored = ["NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "PYTHONNOUSERSITE", "UV_NO_CONFIG"];
    let required = [&usual[..], &ignored].concat();
    for (what, requirements, own, planted_runs, expected) in [
        ("control: no requirements", "", "", true, [&usual[..], &["TERM", "TZ"]].concat()),
        (
            "control: denials only",
            "[[denied]]\nname = \"x\"\n",
            "",
            true,
            [&usual[..], &["TERM", "TZ"]].concat(),
        ),
        (
            "approved",
            "[[approved]]\nname = \"good\"\ncommand = COMMAND\nsha256 = SHA256\n",
            "",
            false,
            required.clone(),
        ),
        (
            "approved, with a variable",
            "[[approved]]\nname = \"good\"\ncommand = COMMAND\nenv = [\"TZ\"]\n",
            "env = { TZ = \"UTC\" }\n",
            false,
            [&required[..], &["TZ"]].concat(),
        ),
        (
            "fixed",
            "[servers.good]\ncommand = COMMAND\nenv = { KEY = \"1\" }\n",
            "env = { KEY = \"1\" }\n",
            false,
            [&required[..], &["KEY"]].concat(),
        ),
    ] {
        let lockhouse = Lockhouse::new().policy(POLICY);
        let (seen, fixture) = (lockhouse.path("seen").display().to_string(), fixture_server());
        let text = format!("#!/usr/bin/env sh\n/usr/bin/env > {seen}\nexec {} \"$@\"\n", fixture.display());
        let program = script(&lockhouse, "server", &text);
        let lockhouse = lockhouse.config(&format!("[servers.good]\ncommand = {program:?}\n{own}"));
        if !requirements.is_empty() {
            let text = requirements.replace("COMMAND", &format!("{program:?}"));
            lockhouse.file("requirements.toml", text.replace("SHA256", &format!("{:?}", sha256(&program))));
        }
        let listed = list(&lockhouse);
        table.row(format!("{what}: it runs"), ensure(listed.stdout.contains("count"), &listed));
        table.row(
            format!("{what}: a planted interpreter runs"),
            equal(lockhouse.path("mark").exists(), planted_runs),
        );
        // The shell sets these itself.
        let of_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
        let seen = std::fs::read_to_string(seen).unwrap_or_default();
        let names = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        let names: BTreeSet<&str> = names.filter(|name| !of_shell.contains(name)).collect();
        table.row(format!("{what}: variables"), equal(names, expected.into_iter().collect()));
        let has_path = seen.lines().any(|line| line == "PATH=/usr/local/bin:/usr/bin:/bin");
        table.row(format!("{what}: PATH"), ensure(has_path != planted_runs, &seen));
        let is_in_root = seen.lines().any(|line| line == "PWD=/");
        table.row(format!("{what}: the current directory"), ensure(is_in_root != planted_runs, &seen));
    }
    table.finish();
}

#[test]
fn a_fixed_command_is_not_found_in_the_users_path() {
    let mut table = Table::new("a command that is a name");
    for (what, is_fixed) in [("control: configured", false), ("fixed", true)] {
        let lockhouse = Lockhouse::new().policy(POLICY);
        let arguments = json!(["-c", format!("exec {}", fixture_server().display())]);
        let server = format!("[servers.good]\ncommand = \"sh\"\nargs = {arguments}\n");
        let lockhouse = if is_fixed { lockhouse } else { lockhouse.config(&server) };
        if is_fixed {
            lockhouse.file("requirements.toml", server);
        }
        let listed = list(&lockhouse);
        table.row(format!("{what}: it runs"), ensure(listed.stdout.contains("count"), &listed));
        table.row(what, equal(lockhouse.path("mark").exists(), !is_fixed));
    }
    table.finish();
}

#[tokio::test]
async fn the_program_of_an_approved_server_is_checked_when_it_starts() {
    let mut table = Table::new("a program, between the check and its start");
    for (what, is_changed) in [("control: unchanged", false), ("changed", true)] {
        let lockhouse = Lockhouse::new().policy(POLICY);
        let text = format!("#!/bin/sh\nexec {}\n", fixture_server().display());
        let program = script(&lockhouse, "server", &text);
        let lockhouse =
            lockhouse.config(&format!("[servers.good]\ncommand = {program:?}\nstart = \"lazy\"\n"));
        let digest = sha256(&program);
        lockhouse.file(
            "requirements.toml",
            format!("[[approved]]\nname = \"good\"\ncommand = {program:?}\nsha256 = {digest:?}\n"),
        );
        let session = Session::connect(command(&lockhouse, &["serve"]), Session::latest()).await;
        if is_changed {
            script(&lockhouse, "server", &format!("{text}# other\n"));
        }
        let answer = session.run_code("python", "from mcp_tools.good import add\nadd(a=1, b=2)['sum']").await;
        let is_right = match is_changed {
            false => answer["value"] == 3,
            true => answer["value"].is_null() && session.log().contains("has the sha256"),
        };
        table.row(what, ensure(is_right, (&answer, session.log())));
    }
    table.finish();
}

const HOST: &str = "http://mcp.example.test/mcp";

fn answer(request: &HttpRequest) -> HttpAnswer {
    request.as_mcp(false).unwrap_or_else(|| HttpAnswer::json(200, &request.result(&json!({"content": []}))))
}

#[test]
fn a_proxy_of_the_users_environment_does_not_get_the_token_of_a_required_server() {
    let mut table = Table::new("which proxy gets the requests, with the token");
    let server = format!(
        "[servers.good]\nurl = {HOST:?}\nbearer_token = \"${{file:TOKEN}}\"\nstart_timeout_seconds = 5\n"
    );
    let approved = format!("[[approved]]\nname = \"good\"\nurl = {HOST:?}\n");
    for (what, requirements, expected) in [
        ("control: no requirements", String::new(), [true, false]),
        ("control: denials only", "[[denied]]\nname = \"x\"\n".into(), [true, false]),
        ("approved", approved.clone(), [false, false]),
        ("approved with a proxy", format!("{approved}proxy = PROXY\n"), [false, true]),
        ("fixed", server.clone(), [false, false]),
        ("fixed with a proxy", format!("{server}proxy = PROXY\n"), [false, true]),
    ] {
        let (of_user, approved) = (HttpServer::start(answer), HttpServer::start(answer));
        let lockhouse = Lockhouse::new().policy(POLICY);
        let token = lockhouse.file("token", "SEKRET-TOKEN").display().to_string();
        let own = server.replace("TOKEN", &token);
        let requirements = requirements.replace("TOKEN", &token);
        let requirements = requirements.replace("PROXY", &format!("{:?}", approved.url("")));
        let lockhouse =
            if requirements.contains("bearer_token") { lockhouse } else { lockhouse.config(&own) };
        if !requirements.is_empty() {
            lockhouse.file("requirements.toml", requirements);
        }
        let mut command = command(&lockhouse, &["tools", "list"]);
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
            command.env(name, of_user.url(""));
        }
        let listed = CommandOutput::run(&mut command, b"");
        let is_token = |request: &HttpRequest| {
            request.headers.get("authorization").is_some_and(|value| value == "Bearer SEKRET-TOKEN")
        };
        let found = [&of_user, &approved].map(|proxy| proxy.requests().iter().any(is_token));
        table.row(what, equal(found, expected).map_err(|error| format!("{error} {listed:?}")));
        if expected != [false, false] {
            table.row(format!("{what}: it works"), ensure(listed.stdout.contains("look"), &listed));
        }
    }
    table.finish();
}

#[test]
fn a_redirect_does_not_reach_a_denied_path() {
    let mut table = Table::new("redirects");
    for (what, requirements, expected) in [
        ("control: no requirements", "", true),
        ("control: another requirement", "[[denied]]\nname = \"x\"\n", true),
        ("the target is denied", "[[denied]]\nurl = \"ORIGIN/denied\"\n", false),
        ("the URL is approved", "[[approved]]\nname = \"good\"\nurl = \"ORIGIN/mcp\"\n", false),
    ] {
        let server = HttpServer::start(|request| match request.path.as_str() {
            "/mcp" => HttpAnswer::status(307).with("Location", "/denied"),
            _ => answer(request),
        });
        let lockhouse = Lockhouse::new().policy(POLICY);
        let url = server.url("/mcp");
        let lockhouse =
            lockhouse.config(&format!("[servers.good]\nurl = {url:?}\nstart_timeout_seconds = 5\n"));
        if !requirements.is_empty() {
            lockhouse.file("requirements.toml", requirements.replace("ORIGIN", &server.url("")));
        }
        let listed = list(&lockhouse);
        let requests = server.requests();
        let reached = |path: &str| requests.iter().any(|request| request.path == path);
        table.row(format!("{what}: control: it is asked"), ensure(reached("/mcp"), &listed));
        table.row(what, equal(reached("/denied"), expected).map_err(|error| format!("{error} {listed:?}")));
    }
    table.finish();
}

/// Each key is an attempt to use what is denied, or what is not approved, beside something else.
#[test]
fn each_key_of_a_denial_is_tested_beside_that_of_an_approval() {
    let lockhouse = Lockhouse::new().policy(POLICY);
    let program = script(&lockhouse, "server", &format!("#!/bin/sh\nexec {}\n", fixture_server().display()));
    std::os::unix::fs::symlink(&program, lockhouse.path("link")).unwrap();
    std::fs::hard_link(&program, lockhouse.path("twin")).unwrap();
    let (digest, here) = (sha256(&program), lockhouse.path("home"));
    let quoted = |path: &Path| format!("{path:?}");
    let command = format!("command = {program:?}\n");
    // The configuration; the keys of an entry; whether that entry under [[approved]] admits, and under [[denied]] denies.
    let rows: Vec<(&str, String, String, [bool; 2])> = vec![
        ("command", command.clone(), command.clone(), [true, true]),
        (
            "a link to it",
            format!("command = {}\n", quoted(&lockhouse.path("link"))),
            command.clone(),
            [false, true],
        ),
        (
            "a hard link to it",
            format!("command = {}\n", quoted(&lockhouse.path("twin"))),
            command.clone(),
            [false, true],
        ),
        ("another", "command = \"/bin/true\"\n".into(), command.clone(), [false, false]),
        ("one that is not there", "command = \"/nowhere/x\"\n".into(), command.clone(), [false, true]),
        (
            "args",
            format!("{command}args = [\"-a\", \"b\"]\n"),
            format!("{command}args = [\"-a\"]\n"),
            [true, true],
        ),
        (
            "args: later",
            format!("{command}args = [\"b\", \"-a\"]\n"),
            format!("{command}args = [\"-a\"]\n"),
            [false, true],
        ),
        (
            "args: joined",
            format!("{command}args = [\"-a=b\"]\n"),
            format!("{command}args = [\"-a\"]\n"),
            [false, true],
        ),
        ("args: none", command.clone(), format!("{command}args = [\"-a\"]\n"), [false, false]),
        (
            "args: one of two",
            format!("{command}args = [\"-a\"]\n"),
            format!("{command}args = [\"-a\", \"b\"]\n"),
            [false, false],
        ),
        (
            "env",
            format!("{command}env = {{ A = \"1\" }}\n"),
            format!("{command}env = [\"A\"]\n"),
            [true, true],
        ),
        (
            "env: beside another",
            format!("{command}env = {{ A = \"1\", B = \"2\" }}\n"),
            format!("{command}env = [\"A\"]\n"),
            [false, true],
        ),
        (
            "env: one of two",
            format!("{command}env = {{ B = \"1\" }}\n"),
            format!("{command}env = [\"A\", \"B\"]\n"),
            [true, true],
        ),
        ("env: none", command.clone(), format!("{command}env = [\"A\"]\n"), [true, false]),
        (
            "env: another",
            format!("{command}env = {{ B = \"1\" }}\n"),
            format!("{command}env = [\"A\"]\n"),
            [false, false],
        ),
        ("cwd", format!("{command}cwd = {here:?}\n"), format!("{command}cwd = {here:?}\n"), [true, true]),
        ("cwd: the current one", command.clone(), format!("{command}cwd = {here:?}\n"), [false, true]),
        (
            "cwd: another",
            format!("{command}cwd = \"/\"\n"),
            format!("{command}cwd = {here:?}\n"),
            [false, false],
        ),
        ("sha256", command.clone(), format!("{command}sha256 = {digest:?}\n"), [true, true]),
        (
            "sha256: another",
            command.clone(),
            format!("{command}sha256 = \"{}\"\n", "0".repeat(64)),
            [false, false],
        ),
        ("url", "url = \"https://a.test/m\"\n".into(), "url = \"https://a.test/m\"\n".into(), [true, true]),
        (
            "url: a final dot",
            "url = \"https://a.test./m\"\n".into(),
            "url = \"https://a.test/m\"\n".into(),
            [false, true],
        ),
        (
            "url: the other scheme",
            "url = \"http://a.test/m\"\n".into(),
            "url = \"https://a.test/m\"\n".into(),
            [false, true],
        ),
        (
            "url: encoded",
            "url = \"https://a.test/%6d\"\n".into(),
            "url = \"https://a.test/m\"\n".into(),
            [false, true],
        ),
        (
            "url: another path",
            "url = \"https://a.test/n\"\n".into(),
            "url = \"https://a.test/m\"\n".into(),
            [false, false],
        ),
        (
            "url: below",
            "url = \"https://a.test/m/n\"\n".into(),
            "url = \"https://a.test/m/*\"\n".into(),
            [true, true],
        ),
        (
            "url: above again",
            "url = \"https://a.test/m/..%2fn\"\n".into(),
            "url = \"https://a.test/m/*\"\n".into(),
            [false, false],
        ),
        (
            "url: an address",
            "url = \"http://[::ffff:10.0.0.1]/m\"\n".into(),
            "url = \"http://10.0.0.1/m\"\n".into(),
            [false, true],
        ),
    ];
    let mut table = Table::new("keys of [[approved]] and [[denied]]");
    let refused = |config: &str, requirements: String| -> Option<Value> {
        lockhouse.file("config/lockhouse/config.toml", format!("[servers.good]\nstart = \"lazy\"\n{config}"));
        lockhouse.file("requirements.toml", requirements);
        let mut shown = self::command(&lockhouse, &["server", "list", "--no-connect", "--json"]);
        let listed = CommandOutput::run(&mut shown, b"").json();
        let good =
            listed.as_array().and_then(|all| all.iter().find(|server| server["name"] == "good").cloned());
        good.filter(|server| server["state"] == "left_out")
    };
    for (name, [approves, denies]) in
        [("good", [true, true]), ("GOOD", [false, true]), ("go*", [false, true]), ("other", [false, false])]
    {
        // An asterisk is no part of a name, so the file is not valid.
        if !name.contains('*') {
            let approved = refused(&command, format!("[[approved]]\nname = {name:?}\n{command}"));
            table.row(format!("approved: name {name}"), ensure(approved.is_none() == approves, &approved));
        }
        let denied = refused(&command, format!("[[denied]]\nname = {name:?}\n"));
        table.row(format!("denied: name {name}"), ensure(denied.is_some() == denies, &denied));
    }
    for (what, config, entry, [approves, denies]) in rows {
        let approved = refused(&config, format!("[[approved]]\nname = \"good\"\n{entry}"));
        table.row(format!("approved: {what}"), ensure(approved.is_none() == approves, &approved));
        let denied = refused(&config, format!("[[denied]]\n{entry}"));
        table.row(format!("denied: {what}"), ensure(denied.is_some() == denies, &denied));
    }
    table.finish();
}

/// Over HTTP+SSE, a server itself names a second URL, about which no requirement has decided.
#[test]
fn a_server_over_sse_is_refused_where_requirements_decide_about_urls() {
    let url = "url = \"https://mcp.example.com/sse\"\n";
    let sse = "transport = \"sse\"\n";
    let reason = "over HTTP+SSE, a server itself names a URL for messages";
    let mut table = Table::new("servers over HTTP+SSE under requirements");
    for (what, requirements, words) in [
        ("control: no requirements", String::new(), None),
        ("control: a denied program", "[[denied]]\nname = \"x\"\n".to_owned(), None),
        ("fixed", format!("[servers.good]\n{url}{sse}"), None),
        (
            "fixed with the other transport",
            format!("[servers.good]\n{url}"),
            Some("lists this server with another command or url"),
        ),
        ("approved", format!("[[approved]]\nname = \"good\"\n{url}"), Some(reason)),
        (
            "another path is denied",
            "[[denied]]\nurl = \"https://mcp.example.com/other\"\n".to_owned(),
            Some(reason),
        ),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[servers.good]\n{url}{sse}")).policy(POLICY);
        if !requirements.is_empty() {
            lockhouse.file("requirements.toml", &requirements);
        }
        let listed =
            CommandOutput::run(&mut command(&lockhouse, &["server", "list", "--no-connect", "--json"]), b"");
        let rows: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
        let rows = rows.as_array().cloned().unwrap_or_default();
        let is_used = rows.iter().any(|row| row["state"] == "idle" && row["transport"] == "sse");
        let reason = rows.iter().find(|row| row["state"] == "left_out").map(|row| row["error"].to_string());
        let holds = match words {
            None => is_used && reason.is_none(),
            Some(words) => !is_used && reason.is_some_and(|reason| reason.contains(words)),
        };
        table.row(what, ensure(holds, &listed));
    }
    table.finish();
}
