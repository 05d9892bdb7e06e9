//! Tests that no file of a user delays or prevents requirements: a running process applies a revocation although the user's
//! files are broken, and though each of them would make a reload fail.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, wait_until};
use serde_json::json;

use super::{ADD, ALLOW, require, server, with_requirements};

/// How a user breaks one file of a fixture.
type Breakage = fn(&Lockhouse);

const CONFIG: &str = "config/lockhouse/config.toml";
const POLICY: &str = "config/lockhouse/policy.toml";
const SERVERS: &str = "servers.json";

/// Replaces a file by what `make` creates at its path.
fn replace(lockhouse: &Lockhouse, name: &str, make: impl Fn(&Path)) {
    let path = lockhouse.path(name);
    std::fs::remove_file(&path).unwrap();
    make(&path);
}

fn set_mode(lockhouse: &Lockhouse, name: &str, mode: u32) {
    std::fs::set_permissions(lockhouse.path(name), PermissionsExt::from_mode(mode)).unwrap();
}

fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
}

fn give_away(lockhouse: &Lockhouse, name: &str) {
    // Only root can; for others, the file stays as it is, and the next row makes up for it.
    if chown(lockhouse.path(name), Some(12_345), None).is_err() {
        set_mode(lockhouse, name, 0o666);
    }
}

/// What a user can do to the own files.
fn breakages() -> Vec<(&'static str, Breakage)> {
    vec![
        ("configuration: not TOML", |it| drop(it.file(CONFIG, "[servers"))),
        ("configuration: an unknown key", |it| drop(it.file(CONFIG, "servrs = 3\n"))),
        ("configuration: out of range", |it| drop(it.file(CONFIG, "[pool]\nidle = 0\n"))),
        ("configuration: no UTF-8", |it| drop(it.file(CONFIG, b"\xff\xfe"))),
        ("configuration: too large", |it| drop(it.file(CONFIG, "#".repeat(5 * 1024 * 1024)))),
        ("configuration: everybody may write it", |it| set_mode(it, CONFIG, 0o666)),
        ("configuration: everybody may write its directory", |it| set_mode(it, "config/lockhouse", 0o777)),
        ("configuration: of another account", |it| give_away(it, CONFIG)),
        ("configuration: a FIFO", |it| replace(it, CONFIG, make_fifo)),
        ("configuration: a directory", |it| replace(it, CONFIG, |path| std::fs::create_dir(path).unwrap())),
        ("configuration: a link to a device", |it| {
            replace(it, CONFIG, |path| symlink("/dev/zero", path).unwrap())
        }),
        ("configuration: a link to itself", |it| replace(it, CONFIG, |path| symlink(path, path).unwrap())),
        ("policy: not TOML", |it| drop(it.file(POLICY, "version = \n"))),
        ("policy: another version", |it| drop(it.file(POLICY, "version = 99\n"))),
        ("policy: everybody may write it", |it| set_mode(it, POLICY, 0o666)),
        ("policy: of another account", |it| give_away(it, POLICY)),
        ("policy: a FIFO", |it| replace(it, POLICY, make_fifo)),
        ("policy: a directory", |it| replace(it, POLICY, |path| std::fs::create_dir(path).unwrap())),
        ("servers file: not JSON", |it| drop(it.file(SERVERS, "{"))),
        ("servers file: it is gone", |it| replace(it, SERVERS, |_| {})),
        ("servers file: everybody may write it", |it| set_mode(it, SERVERS, 0o666)),
        ("servers file: a FIFO", |it| replace(it, SERVERS, make_fifo)),
        ("servers file: a link that leads nowhere", |it| {
            replace(it, SERVERS, |path| symlink("/nonexistent/servers.json", path).unwrap());
        }),
        ("state directory: everybody may write it", |it| set_mode(it, "state/lockhouse", 0o777)),
        ("all of it is removed", |it| std::fs::remove_dir_all(it.path("config")).unwrap()),
    ]
}

/// Returns whether the user's own revocation is applied although the file is broken, which is the control: for the user's
/// files, a reload fails as a whole. Then returns whether the administrator's revocation is applied.
async fn attempt(breakage: Breakage) -> (bool, bool, String) {
    let lockhouse = Lockhouse::new().server("fixture", &[]).config(&server("unused")).policy(ALLOW);
    require(&lockhouse, "");
    let session = Session::connect(with_requirements(&lockhouse, &["serve"]), Session::latest()).await;
    let works = async || session.run_code("python", ADD).await["value"] == json!(42);
    assert!(works().await, "control: {}", session.log());
    breakage(&lockhouse);
    let log = session.reload().await;
    let is_refused = log.contains("was not reloaded") && works().await;
    require(&lockhouse, "[[denied]]\nname = \"fixture\"\n");
    wait_until("the revocation is applied", async || (!works().await).then_some(())).await;
    let is_revoked = !works().await;
    let log = session.close().await.stderr;
    (is_refused, is_revoked, log)
}

#[tokio::test]
async fn a_revocation_is_applied_whatever_the_users_files_contain() {
    let mut table = Table::new("a revocation while a file of the user is broken");
    let attempts = breakages();
    for part in attempts.chunks(9) {
        let tried =
            part.iter().map(|(what, breakage)| async move { (*what, Box::pin(attempt(*breakage)).await) });
        for (what, (is_refused, is_revoked, log)) in futures_util::future::join_all(tried).await {
            // A file that does not exist is no error.
            let is_control =
                is_refused || what.starts_with("all of it") || what.ends_with("a link to itself");
            table.row(format!("{what}: control: a reload fails"), ensure(is_control, &log));
            table.row(format!("{what}: it is revoked"), ensure(is_revoked, &log));
        }
    }
    table.finish();
}
