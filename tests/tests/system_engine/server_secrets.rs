//! Tests of secrets that root gives to an engine of the system.

use std::os::unix::fs::PermissionsExt as _;

use lockhouse_tests::{CommandOutput, Table, ensure, equal};
use serde_json::json;

use super::host::{ENGINE, Host, OTHER_PERSON, PERSON, can_manage};

const ROOT: u32 = 0;
const POLICY: &str = "version = 1\n[servers.secret]\nallow = [\"env\"]\n";
const PRINT: &str = "from secret import env\nenv()['TOKEN']";

fn set(host: &Host, account: u32, name: &str, value: &[u8]) -> CommandOutput {
    let person = PERSON.to_string();
    let mut command = host.lockhouse_as(account, &["server", "secret", name, "--person", &person]);
    CommandOutput::run(&mut command, value)
}

#[tokio::test(flavor = "multi_thread")]
async fn root_sets_a_secret_and_nobody_reads_it_back() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(POLICY).await;
    host.kill_engine();
    let folder = host.path("engine/config/lockhouse/secrets");
    let path = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&path).unwrap();
    let server = format!(
        "[servers.secret]\ncommand = \"/mnt/fixture-server\"\nenv = {{ TOKEN = \"${{file:{}}}\" }}\n",
        folder.join("github.TOKEN").display()
    );
    std::fs::write(&path, configured + &server).unwrap();
    host.start_engine().await;
    let client = host.client().await;
    let mut table = Table::new("secrets of an engine of the system");
    let before = client.run_code("python", PRINT).await;
    table.row(
        "before: the server is left out",
        equal(before["error"]["type"].clone(), json!("ModuleNotFoundError")),
    );
    for account in [PERSON, OTHER_PERSON] {
        let refused = set(&host, account, "github.TOKEN", b"SECRET-AGENT\n");
        let says =
            ensure(refused.status == Some(2) && refused.stderr.contains("only root sets secrets"), &refused);
        table.row(
            format!("the account {account}"),
            if account == PERSON { says } else { ensure(refused.status != Some(0), &refused) },
        );
    }
    for (name, value, words) in [
        ("../config.toml", &b"x"[..], "the name of a secret has letters"),
        ("github.TOKEN", b"", "no secret on standard input"),
        ("github.TOKEN", &[b'x'; 70_000], "it is too long"),
    ] {
        let refused = set(&host, ROOT, name, value);
        table.row(words, ensure(refused.status == Some(2) && refused.stderr.contains(words), &refused));
    }
    for (value, generation) in [("SECRET-ONE", 2), ("SECRET-TWO", 3)] {
        let output = set(&host, ROOT, "github.TOKEN", format!("{value}\n").as_bytes());
        let expected = format!("set github.TOKEN; the configuration is in force (generation {generation})\n");
        table.row(format!("root sets {value}"), equal((output.status, output.stdout), (Some(0), expected)));
        let answer = client.run_code("python", PRINT).await;
        table.row("the server has it", equal(answer["value"].clone(), json!(value)));
    }
    let facts = std::fs::metadata(folder.join("github.TOKEN")).unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&facts);
    table
        .row("the file is the engine's", equal((owner, facts.permissions().mode() & 0o777), (ENGINE, 0o600)));
    let read = CommandOutput::run(&mut host.shell_as(PERSON, &format!("cat {}/*", folder.display())), b"");
    table.row(
        "the person cannot read it",
        ensure(read.status != Some(0) && !read.stdout.contains("SECRET"), &read),
    );
    let records = host.records();
    let changes: Vec<_> = records.iter().filter(|record| record["target"] == "secret").collect();
    table.row("each is recorded", equal(changes.len(), 2));
    let all = format!("{records:?}{}", host.engine_log());
    table.row(
        "no record and no log has it",
        ensure(!all.contains("SECRET-ONE") && !all.contains("SECRET-TWO"), all.len()),
    );
    table.finish();
}
