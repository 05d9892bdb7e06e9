//! Tests of reading files of this machine: which paths can be opened, what the errors say, and what the audit log has.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

use super::{FILES_POLICY, lockhouse, opening};

const TEXT: &str = "region,amount\nnorth,3\nsouth,4\n";

fn opened(lockhouse: &Lockhouse, path: &str) -> String {
    let answer = lockhouse.answer("python", &opening(lockhouse, path));
    answer["value"].as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

#[test]
fn only_permitted_regular_files_can_be_opened() {
    let lockhouse = lockhouse();
    let data = lockhouse.path("home/data");
    for (name, text) in [
        ("data/žluť 1.csv", "unicode"),
        ("data/deep/a/b.csv", "deep"),
        ("data/.hidden.csv", "hidden"),
        ("data/.git/x.csv", "hidden"),
        ("data/secret.txt", "other kind"),
        ("other/x.csv", "outside"),
    ] {
        lockhouse.file(&format!("home/{name}"), text);
    }
    symlink("../other/x.csv", data.join("out.csv")).unwrap();
    symlink("../other", data.join("folder")).unwrap();
    symlink("sales.csv", data.join("in.csv")).unwrap();
    symlink("gone", data.join("dangling.csv")).unwrap();
    std::fs::hard_link(data.join("sales.csv"), data.join("hard.csv")).unwrap();
    std::fs::create_dir(data.join("dir.csv")).unwrap();
    nix::unistd::mkfifo(&data.join("pipe.csv"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(data.join("socket.csv")).unwrap();
    std::fs::File::create(data.join("large.csv")).unwrap().set_len(1024 * 1024 + 1).unwrap();
    let mut table = Table::new("paths");
    for (path, expected) in [
        ("data/sales.csv", TEXT),
        ("data/žluť 1.csv", "unicode"),
        ("data/deep/a/b.csv", "deep"),
        ("data/in.csv", TEXT),
        // A hard link is the file.
        ("data/hard.csv", TEXT),
        ("data/deep/../sales.csv", TEXT),
    ] {
        table.row(path, equal(opened(&lockhouse, path).as_str(), expected));
    }
    for (path, words) in [
        ("data/none.csv", "FileNotFoundError"),
        ("data/.hidden.csv", "PermissionError"),
        ("data/.git/x.csv", "PermissionError"),
        ("data/secret.txt", "PermissionError"),
        ("data/out.csv", "a symbolic link in this path leads to a file that is not in `read`"),
        ("data/folder/x.csv", "a symbolic link in this path"),
        ("data/dangling.csv", "cannot be resolved"),
        ("data/dir.csv", "it is a folder"),
        ("data/pipe.csv", "not a regular file"),
        ("data/socket.csv", "not a regular file"),
        ("data/large.csv", "file_mib"),
        ("other/x.csv", "PermissionError"),
        ("data/../other/x.csv", "PermissionError"),
        ("../config/lockhouse/config.toml", "PermissionError"),
    ] {
        let got = opened(&lockhouse, path);
        table.row(path, ensure(got.contains(words), &got));
    }
    for path in ["/etc/passwd", "/proc/self/environ", "/dev/zero", "/proc/self/root/etc/passwd"] {
        let code = format!("try: r = open({path:?}).read(1)\nexcept Exception as e: r = type(e).__name__\nr");
        table.row(path, equal(&lockhouse.answer("python", &code)["value"], &json!("PermissionError")));
    }
    let code = "try: r = open('/data\\0.csv').read()\nexcept Exception as e: r = type(e).__name__\nr";
    table.row("NUL", equal(&lockhouse.answer("python", code)["value"], &json!("ValueError")));
    table.finish();
}

#[test]
fn files_of_the_kernel_and_of_lockhouse_are_never_opened() {
    let lockhouse =
        Lockhouse::outside_tmp().config("[servers.files]\nread = [\"/\", \"~\"]\n").policy(FILES_POLICY);
    lockhouse.file("home/a.txt", "control");
    let mut table = Table::new("paths");
    table.row("control", equal(opened(&lockhouse, "a.txt").as_str(), "control"));
    for path in ["../config/lockhouse/policy.toml", "../state/lockhouse/key"] {
        let got = opened(&lockhouse, path);
        table.row(path, ensure(got.contains("PermissionError") && !got.contains("version"), &got));
    }
    for path in ["/proc/self/environ", "/sys/kernel/notes", "/dev/zero"] {
        let code = format!("try: r = open({path:?}, 'rb').read()\nexcept Exception as e: r = str(e)\nr");
        let answer = lockhouse.answer("python", &code);
        let value = answer["value"].as_str().unwrap_or_default();
        table.row(path, ensure(value.contains("files of the kernel"), &answer));
    }
    table.finish();
}

#[test]
fn the_policy_decides_about_each_file_and_the_log_has_a_record() {
    let lockhouse = lockhouse();
    lockhouse.file("home/data/private/a.csv", "private");
    lockhouse.file("home/data/asked.csv", "asked");
    let folder = lockhouse.path("home/data/private");
    symlink(lockhouse.path("home/data/private/a.csv"), lockhouse.path("home/data/alias.csv")).unwrap();
    let lockhouse = lockhouse.policy(&format!(
        "version = 1\n[servers.files]\nallow = [\"read\", \"stat\"]\n\
         [[servers.files.rules]]\ntool = \"read\"\nwhen = {{ path = {{ under = {folder:?} }} }}\neffect = \"deny\"\n\
         [[servers.files.rules]]\ntool = \"read\"\nwhen = {{ path = {{ pattern = \"*asked*\" }} }}\neffect = \"ask\"\n"
    ));
    let mut table = Table::new("decisions");
    table.row("allowed", equal(opened(&lockhouse, "data/sales.csv").as_str(), TEXT));
    for name in ["data/private/a.csv", "data/alias.csv"] {
        let got = opened(&lockhouse, name);
        table.row(name, ensure(got.starts_with("PermissionError") && got.contains("policy.toml:5"), &got));
    }
    let asked = opened(&lockhouse, "data/asked.csv");
    table.row("asked", ensure(asked.starts_with("PermissionError"), &asked));
    let records = lockhouse.audit();
    let of = |event: &str| records.iter().filter(|record| record["event"] == event).collect::<Vec<_>>();
    let calls = of("call");
    table.row("one record for the file that was read", equal(calls.len(), 1));
    table.row(
        "which names it",
        ensure(calls.first().is_some_and(|call| call["server"] == "files" && call["tool"] == "read"), &calls),
    );
    let outcomes = of("outcome");
    table.row(
        "and the bytes that were read",
        ensure(
            outcomes.first().is_some_and(|outcome| outcome.to_string().contains(&TEXT.len().to_string())),
            &outcomes,
        ),
    );
    table.row("a record for each denial", equal(of("denial").len(), 3));
    table.finish();
}

#[test]
fn without_configuration_or_permission_there_are_no_files() {
    let mut table = Table::new("off");
    let off = Lockhouse::outside_tmp().policy(FILES_POLICY);
    off.file("home/data/sales.csv", TEXT);
    let got = opened(&off, "data/sales.csv");
    table.row("not configured", ensure(got.starts_with("PermissionError"), &got));
    let listed =
        off.answer("python", "from mcp_tools import list_servers\n[s['name'] for s in list_servers()]");
    table.row("and no server", equal(&listed["value"], &json!([])));
    let denied = lockhouse().policy("version = 1\n");
    let got = opened(&denied, "data/sales.csv");
    table.row("not permitted", ensure(got.starts_with("PermissionError") && got.contains("policy"), &got));
    table.finish();
}

#[test]
fn folders_can_be_listed_and_files_have_facts() {
    let lockhouse = lockhouse();
    lockhouse.file("home/data/sub/x.csv", "1");
    lockhouse.file("home/data/note.txt", "1");
    let data = lockhouse.path("home/data").display().to_string();
    let mut table = Table::new("programs");
    for (language, code, expected) in [
        ("python", format!("import os\nsorted(os.listdir({data:?}))"), json!(["sales.csv", "sub"])),
        ("python", format!("import os\nos.path.getsize({data:?} + '/sales.csv')"), json!(TEXT.len())),
        (
            "python",
            format!(
                "import os\n[os.path.exists({data:?} + n) for n in ('/sales.csv', '/note.txt', '/none.csv', '')]"
            ),
            json!([true, false, false, true]),
        ),
        (
            "python",
            format!(
                "import csv\nsum(int(r['amount']) for r in csv.DictReader(open({data:?} + '/sales.csv')))"
            ),
            json!(7),
        ),
        (
            "python",
            "from files import list\n[e['name'] for e in list('~/data')['entries']]".to_owned(),
            json!(["sales.csv", "sub"]),
        ),
        (
            "python",
            format!(
                "import base64\nfrom files import read\nr = read({data:?} + '/sales.csv', 0, 6)\n[base64.b64decode(r['base64']).decode(), r['next_offset']]"
            ),
            json!(["region", 6]),
        ),
        (
            "typescript",
            format!(
                "import {{ readFile, readdir }} from 'node:fs/promises';\n[(await readFile({data:?} + '/sales.csv', 'utf8')).length, (await readdir({data:?})).sort()]"
            ),
            json!([TEXT.len(), ["sales.csv", "sub"]]),
        ),
        (
            "typescript",
            format!(
                "import {{ readFile }} from 'node:fs/promises';\nlet r; try {{ await readFile({data:?} + '/note.txt') }} catch (e) {{ r = e.code }}; r"
            ),
            json!("EACCES"),
        ),
    ] {
        let answer = lockhouse.answer(language, &code);
        table.row(code, equal(&answer["value"], &expected).map_err(|e| format!("{e} {}", answer["error"])));
    }
    table.finish();
}

#[test]
fn a_configured_server_called_files_keeps_its_name() {
    let lockhouse = Lockhouse::outside_tmp()
        .server("files", &[])
        .config("[servers.lockhouse_files]\nread = [\"~/data\"]\n")
        .policy("version = 1\n[servers.files]\nallow = [\"add\"]\n[servers.lockhouse_files]\nallow = [\"read\"]\n");
    lockhouse.file("home/data/sales.csv", TEXT);
    let mut table = Table::new("names");
    table.row("open", equal(opened(&lockhouse, "data/sales.csv").as_str(), TEXT));
    let answer = lockhouse.answer("python", "from files import add\nadd(1, 2)['sum']");
    table.row("the configured server", equal(&answer["value"], &json!(3)));
    let calls: Vec<_> = lockhouse.audit().into_iter().filter(|record| record["event"] == "call").collect();
    table.row("the log", ensure(calls.iter().any(|call| call["server"] == "lockhouse_files"), &calls));
    table.finish();
}
