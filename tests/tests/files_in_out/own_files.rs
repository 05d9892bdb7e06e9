//! Tests that programs cannot use Lockhouse's own files, wherever the configuration and the command line have put them:
//! a folder that contains them is granted, and everything else in it can be used.

use std::os::unix::fs::symlink;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

/// What stands in the own files, so that it is found in answers.
const MARK: &str = "own-file-of-lockhouse";

/// The own files below the home directory, the modules of a Python environment, and the script of a server.
const OWN: [&str; 15] = [
    "work/lockhouse.toml",
    "work/lockhouse.toml.lockhouse-backup-1",
    "work/rules.toml",
    "work/servers.json",
    "work/more.json",
    "work/token",
    "work/log/old.jsonl",
    "work/skills/add/SKILL.md",
    "work/tls/key.pem",
    "work/clients.json",
    "work/editor.env",
    "work/requirements.toml",
    "work/required.toml",
    "work/env/lib/module.py",
    "work/server.py",
];

/// Returns Lockhouse with its own files below `home/work`, which programs may read and write.
fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::outside_tmp();
    for name in OWN {
        lockhouse.file(&format!("home/{name}"), MARK);
    }
    let work = lockhouse.path("home/work");
    let config = format!(
        "# {MARK}\nservers_files = [\"more.json\"]\n[servers.files]\nread = [\"~/work\"]\nwrite = [\"~/work\"]\n\
         [servers.off]\ncommand = \"true\"\nenabled = false\nenv = {{ TOKEN = \"${{file:{work}/token}}\" }}\n\
         [audit]\ndirectory = \"{work}/log\"\n[skills]\ndirectories = [\"~/work/skills\"]\n\
         [python]\nenvironment = \"{work}/env\"\n\
         [http]\ntokens = \"clients.json\"\nlisten = [\"unix:{work}/http.sock\"]\n\
         [http.tls]\ncertificate = \"tls/certificate.pem\"\nkey = \"tls/key.pem\"\n",
        work = work.display()
    );
    lockhouse.file("home/work/lockhouse.toml", config);
    let policy = format!("# {MARK}\nversion = 1\n[servers.files]\nallow = [\"*\"]\n");
    for name in ["rules", "required"] {
        lockhouse.file(&format!("home/work/{name}.toml"), &policy);
    }
    let required = format!("# {MARK}\npolicy = \"{}/required.toml\"\n", work.display());
    lockhouse.file("home/work/requirements.toml", required);
    lockhouse.file("home/work/editor.env", format!("# {MARK}\nA=b\n"));
    for name in ["servers", "more"] {
        let entry = json!({"type": "stdio", "command": "true", "args": [MARK, work.join("server.py")], "envFile": work.join("editor.env")});
        lockhouse.file(&format!("home/work/{name}.json"), json!({"servers": {name: entry}}).to_string());
    }
    for name in ["data.csv", "deep/notes.txt"] {
        lockhouse.file(&format!("home/work/{name}"), "free");
    }
    lockhouse
}

fn command(lockhouse: &Lockhouse, arguments: &[&str]) -> Command {
    let work = lockhouse.path("home/work");
    let mut command = lockhouse.command(arguments);
    for (option, file) in
        [("--config", "lockhouse.toml"), ("--policy", "rules.toml"), ("--servers", "servers.json")]
    {
        command.arg(option).arg(work.join(file));
    }
    command.env("LOCKHOUSE_REQUIREMENTS", work.join("requirements.toml"));
    command
}

fn answer(lockhouse: &Lockhouse, code: &str) -> Value {
    let arguments = ["run", "-", "--language", "python", "--json"];
    CommandOutput::run(&mut command(lockhouse, &arguments), code.as_bytes()).json()
}

/// Returns a program that tries each path to read and then to write. Its value has for each path the text or the error of
/// both.
fn attempts(paths: &[String]) -> String {
    let paths = json!(paths);
    format!(
        "import json
def tried(attempt):
    try: return attempt()
    except Exception as e: return f'{{type(e).__name__}}: {{e}}'
def read(path):
    with open(path) as f: return f.read()
def write(path):
    with open(path, 'w') as f: f.write('changed')
    return 'written'
[[tried(lambda: read(path)), tried(lambda: write(path))] for path in json.loads({:?})]",
        paths.to_string()
    )
}

#[test]
fn own_files_in_a_granted_folder_are_refused_and_the_rest_of_it_is_not() {
    let lockhouse = lockhouse();
    let work = lockhouse.path("home/work");
    std::fs::hard_link(work.join("token"), work.join("linked-token")).unwrap();
    std::fs::hard_link(work.join("log/old.jsonl"), work.join("linked-log")).unwrap();
    std::fs::hard_link(lockhouse.file("home/other.csv", "free"), work.join("linked-data")).unwrap();
    symlink(work.join("lockhouse.toml"), work.join("by-symbolic-link")).unwrap();
    symlink(&work, lockhouse.path("home/way")).unwrap();
    let own = OWN.into_iter().chain(["work/linked-token", "work/linked-log", "work/by-symbolic-link"]);
    let mut refused: Vec<String> =
        own.map(|name| lockhouse.path("home").join(name).display().to_string()).collect();
    // Files that are not there yet.
    refused.extend(
        ["http.sock", "tls/certificate.pem", "log/new.jsonl", "skills/new", "env/sitecustomize.py"]
            .map(|name| work.join(name).display().to_string()),
    );
    let free = ["data.csv", "deep/notes.txt", "linked-data", "lockhouse.toml.txt"];
    let free = free.map(|name| work.join(name).display().to_string());
    let mut table = Table::new("own files in a granted folder");
    let refused_found = answer(&lockhouse, &attempts(&refused));
    for (at, path) in refused.iter().enumerate() {
        for (what, found) in ["read", "write"].iter().zip(0..) {
            let found = refused_found["value"][at][found].as_str().unwrap_or_default();
            let is_refused = found.starts_with("PermissionError") && found.contains("of Lockhouse itself");
            let name = path.strip_prefix(&format!("{}/", work.display())).unwrap_or(path);
            table.row(format!("{name}: {what}"), ensure(is_refused, (found, &refused_found["error"])));
        }
    }
    table.row("nothing of them is in the answer", ensure(!refused_found.to_string().contains(MARK), ""));
    let kept = OWN
        .iter()
        .all(|name| std::fs::read_to_string(lockhouse.path("home").join(name)).unwrap().contains(MARK));
    table.row("none of them was changed", ensure(kept, ""));
    let found = answer(&lockhouse, &attempts(&free));
    for (at, path) in free.iter().enumerate() {
        let expected =
            if path.ends_with(".txt") && path.contains("toml") { "FileNotFoundError" } else { "free" };
        let read = found["value"][at][0].as_str().unwrap_or_default();
        table.row(format!("control: {path}: read"), ensure(read.starts_with(expected), &found));
        let written = found["value"][at][1].as_str().unwrap_or_default();
        // No file with other names is replaced, whoever owns it.
        let is_right = match path.ends_with("linked-data") {
            true => written.contains("it has other names (hard links)"),
            false => written == "written",
        };
        table.row(format!("control: {path}: write"), ensure(is_right, written));
    }
    let listing = format!("import os\nsorted(os.listdir({:?}))", work.display().to_string());
    let expected = json!(["data.csv", "deep", "linked-data", "lockhouse.toml.txt", "tls"]);
    table.row("they are not listed", equal(&answer(&lockhouse, &listing)["value"], &expected));
    table.finish();
}

/// Python imports these before a worker is sandboxed, and looks for them beside each link to the interpreter.
#[test]
fn the_code_of_the_interpreter_cannot_be_changed() {
    let lockhouse = Lockhouse::outside_tmp();
    let home = lockhouse.path("home");
    std::fs::create_dir_all(home.join("conda/bin")).unwrap();
    std::fs::create_dir_all(home.join("conda/lib/python3.11/site-packages")).unwrap();
    symlink("/usr/bin/python3", home.join("conda/bin/python3")).unwrap();
    let interpreter = home.join("conda/bin/python3");
    let lockhouse = lockhouse
        .config(&format!(
            "[servers.files]\nread = [\"~\"]\nwrite = [\"~\"]\n[python]\ninterpreter = {interpreter:?}\n"
        ))
        .policy("version = 1\n[servers.files]\nallow = [\"*\"]\n");
    let names = [
        "conda/pyvenv.cfg",
        "conda/bin/pyvenv.cfg",
        "conda/bin/pybuilddir.txt",
        "conda/bin/python3._pth",
        "conda/bin/lib",
        "conda/lib/python3.11/sitecustomize.py",
        "conda/lib/python3.11/site-packages/x.pth",
        "conda/lib/python3.12",
        "conda/lib/python311.zip",
        "conda/share/notes.txt",
        "notes.txt",
    ];
    std::fs::create_dir(home.join("conda/share")).unwrap();
    let code = attempts(&names.map(|name| home.join(name).display().to_string()));
    let answer = lockhouse.answer("python", &code);
    let mut table = Table::new("code of an interpreter in a granted folder");
    for (name, found) in names.iter().zip(answer["value"].as_array().into_iter().flatten()) {
        let written = found[1].as_str().unwrap_or_default();
        let is_right = match name.ends_with("notes.txt") {
            true => written == "written",
            false => written.starts_with("PermissionError") && !home.join(name).is_file(),
        };
        table.row(*name, ensure(is_right, written));
    }
    table.row(
        "all were tried",
        ensure(answer["value"].as_array().is_some_and(|rows| rows.len() == names.len()), &answer),
    );
    table.finish();
}

/// A hard link that is made while Lockhouse runs, and a file that is replaced while it runs.
#[tokio::test]
async fn later_links_and_replaced_files_are_refused_too() {
    let lockhouse = lockhouse();
    let work = lockhouse.path("home/work");
    let session = Session::connect(command(&lockhouse, &["serve"]), Session::latest()).await;
    let path = |name: &str| work.join(name).display().to_string();
    let mut table = Table::new("changes while Lockhouse runs");
    let first = session.run_code("python", &attempts(&[path("rules.toml"), path("data.csv")])).await;
    table.row("control: another file", equal(&first["value"][1], &json!(["free", "written"])));
    table
        .row("before", ensure(first["value"][0].to_string().matches("PermissionError").count() == 2, &first));
    let policy = std::fs::read_to_string(work.join("rules.toml")).unwrap();
    std::fs::write(work.join("draft"), policy).unwrap();
    std::fs::rename(work.join("draft"), work.join("rules.toml")).unwrap();
    std::fs::hard_link(work.join("rules.toml"), work.join("later")).unwrap();
    let then = session.run_code("python", &attempts(&[path("rules.toml"), path("later")])).await;
    for (at, what) in ["the replaced file", "a hard link to it"].iter().enumerate() {
        let is_refused = then["value"][at].to_string().matches("PermissionError").count() == 2;
        table.row(*what, ensure(is_refused, &then));
    }
    table.finish();
}
