//! Attempts to delay or undo a change of the requirements, by reloads and changes of the user's files at the same time.

use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::fixture_server;
use serde_json::json;

use super::Row;
use super::storm::{Storm, hang_up, replace, swap, write};
use crate::requirements::attempts::{Host, boxed};
use crate::requirements::{ADD, ALLOW, server};

const DENIED: &str = "[[denied]]\nname = \"fixture\"\n";
const DENIES: &str = "policy = \"ROOT/etc/lockhouse/policy.toml\"\n";
const STOP: &str = "stop = \"incident 7\"\n";
/// Runs after the application. A storm may have taken the server out of the configuration.
const TRIES: usize = 8;
/// Runs of a control, which ends with the first that succeeds. By chance, the server may be absent at many of them.
const CONTROL_TRIES: usize = 100;

/// Lets a user act while the requirements change. Returns whether a run succeeds after their application.
async fn raced<A: Fn(u64) + Send + 'static>(
    it: &Host,
    what: &str,
    act: impl FnOnce(u32, &Host) -> A,
) -> (bool, String) {
    let session = it.serve(&[], &[]).await;
    let before = session.run_code("python", ADD).await;
    assert_eq!(before["value"], 42, "before the change: {before}");
    let storm = Storm::begin(act(session.pid(), it));
    storm.continue_for_a_while().await;
    it.forbid_and_wait(what).await;
    let (mut answers, mut is_done) = (Vec::new(), false);
    let tries = if it.is_control() { CONTROL_TRIES } else { TRIES };
    while answers.len() < tries && !is_done {
        let answer = session.run_code("python", ADD).await;
        is_done = answer["value"] == 42;
        answers.push(answer);
        storm.continue_for_a_while().await;
    }
    drop(storm);
    session.close().await;
    (is_done, format!("{answers:?}"))
}

/// Returns a command of the user, which is run without requirements: it only sends a request, or edits a file.
fn command(it: &Host, arguments: &[&str]) -> impl Fn() + Send + use<> {
    let command = it.lockhouse.command(arguments);
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let program = command.get_program().to_owned();
    let variables: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    move || {
        let mut command = Command::new(&program);
        let _ = command.args(&arguments).env_clear().envs(variables.clone()).output();
    }
}

fn config(it: &Host) -> PathBuf {
    it.path("config/lockhouse/config.toml")
}

fn policy(it: &Host) -> PathBuf {
    it.path("config/lockhouse/policy.toml")
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("raced reloads", "SIGHUP, a denied server", DENIED, |it| {
            boxed(raced(it, "SIGHUP", |pid, _| move |_| hang_up(pid)))
        }),
        ("raced reloads", "SIGHUP, the kill switch", STOP, |it| {
            boxed(raced(it, "SIGHUP and stop", |pid, _| move |_| hang_up(pid)))
        }),
        ("raced reloads", "SIGHUP, a required policy", DENIES, |it| {
            boxed(raced(it, "SIGHUP and policy", |pid, _| move |_| hang_up(pid)))
        }),
        ("raced reloads", "lockhouse reload", DENIED, |it| {
            boxed(raced(it, "lockhouse reload", |_, it| {
                let reload = command(it, &["reload"]);
                move |_| reload()
            }))
        }),
        ("raced reloads", "the configuration changes its kind", DENIED, |it| {
            boxed(raced(it, "the configuration", |pid, it| {
                let path = config(it);
                move |round| {
                    swap(&path, &server("fixture"), round);
                    hang_up(pid);
                }
            }))
        }),
        ("raced reloads", "the policy changes its kind", DENIES, |it| {
            boxed(raced(it, "the policy", |pid, it| {
                let path = policy(it);
                move |round| {
                    swap(&path, ALLOW, round);
                    hang_up(pid);
                }
            }))
        }),
        ("raced reloads", "the directory is renamed", STOP, |it| {
            boxed(raced(it, "the directory", |pid, it| {
                let (here, away) = (it.path("config/lockhouse"), it.path("config/away"));
                move |round| {
                    // It is there most of the time, so that the control can succeed.
                    match round % 8 {
                        0 => std::fs::rename(&here, &away).unwrap(),
                        1 => std::fs::rename(&away, &here).unwrap(),
                        _ => {}
                    }
                    hang_up(pid);
                }
            }))
        }),
        ("raced reloads", "the server is defined anew", DENIED, |it| {
            boxed(raced(it, "a new server", |pid, it| {
                let path = config(it);
                move |round| {
                    let text = format!("{}start_timeout_seconds = {}\n", server("fixture"), 20 + round % 7);
                    replace(&path, |next| write(next, &text));
                    hang_up(pid);
                }
            }))
        }),
        ("raced reloads", "lockhouse policy allow", DENIES, |it| {
            boxed(raced(it, "lockhouse policy allow", |pid, it| {
                let effects =
                    ["deny", "allow"].map(|effect| command(it, &["policy", effect, "fixture.text"]));
                move |round| {
                    effects[(round % 2) as usize]();
                    hang_up(pid);
                }
            }))
        }),
        ("raced reloads", "a servers file that comes and goes", DENIED, |it| {
            boxed(async {
                let path = it.path("own.json");
                let text = json!({"mcpServers": {"other": {"command": fixture_server()}}}).to_string();
                write(&path, &text);
                it.config(&format!("servers_files = [{path:?}]\n{}", server("fixture")));
                raced(it, "a servers file", |pid, _| {
                    move |round| {
                        swap(&path, &text, round);
                        hang_up(pid);
                    }
                })
                .await
            })
        }),
    ]
}
