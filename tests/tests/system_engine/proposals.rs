//! Tests of the policy that a person proposes for the engine of the system.

use lockhouse_tests::{CommandOutput, Session, Table, ensure, equal};
use serde_json::{Value, json};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

pub(super) const APPROVED: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"env\"]\n";
pub(super) const PROPOSED: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"echo\"]\n";
const NOTHING: &str = "version = 1\n";
const ROOT: u32 = 0;

/// Returns for the tools `add`, `env` and `echo` whether a program may call them.
pub(super) async fn permitted(client: &Session) -> Value {
    let code = "def may(tool, **arguments):\n    try:\n        import fixture\n        getattr(fixture, tool)(**arguments)\n        return True\n    \
                except Exception:\n        return False\n[may('add', a=1, b=2), may('env'), may('echo', value=7)]";
    client.run_code("python", code).await["value"].clone()
}

pub(super) fn policy(host: &Host, account: u32, arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(&mut host.lockhouse_as(account, &[&["policy"], arguments].concat()), b"")
}

/// Returns the digest that a command has shown of a proposal.
pub(super) fn digest(shown: &CommandOutput) -> String {
    let is_digest = |word: &&str| word.len() == 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    let words = shown.stdout.split(|letter: char| letter.is_whitespace() || letter == ':');
    words.into_iter().find(is_digest).unwrap_or("0000000000000000").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_restricts_at_once_and_permits_when_root_accepts_it() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(APPROVED).await;
    let file = host.path("tools/nothing.toml").display().to_string();
    host.write("tools/nothing.toml", NOTHING);
    host.write("tools/wrong.toml", "version = 1\n[servers.fixture]\nallow = 7\n");
    host.write("home/.config/lockhouse/policy.toml", PROPOSED);
    let client = host.client().await;
    let mut table = Table::new("the proposed policy of a person: add, env, echo");
    table.row("approved", equal(permitted(&client).await, json!([true, true, false])));
    let proposed = policy(&host, PERSON, &["propose"]);
    let is_shown =
        ["env", "echo", "sudo lockhouse policy accept"].iter().all(|part| proposed.stdout.contains(part));
    table.row("the person proposes another one", ensure(proposed.status == Some(0) && is_shown, &proposed));
    table.row("it restricts at once", equal(permitted(&client).await, json!([true, false, false])));
    let digest = digest(&proposed);
    for (account, name) in [(PERSON, "the person"), (OTHER_PERSON, "another person")] {
        let refused = policy(&host, account, &["accept", &digest]);
        let says = match account {
            PERSON => format!(
                "lockhouse: this command cannot accept it: an administrator accepts it with sudo lockhouse policy accept {digest}\n"
            ),
            _ => "lockhouse: the engine of the system does not answer this request, or is of another version\n\
                  lockhouse: no engine has a proposal with this digest: `lockhouse policy proposals` lists them\n"
                .to_owned(),
        };
        let is_refused = refused.status == Some(2) && refused.stderr == says;
        table.row(format!("{name} cannot accept it"), ensure(is_refused, &refused));
    }
    let other = policy(&host, OTHER_PERSON, &["propose", &file]);
    table.row("another person proposes nothing", ensure(other.status != Some(0), &other));
    table.row("nothing has changed", equal(permitted(&client).await, json!([true, false, false])));
    let wrong = policy(&host, ROOT, &["accept", "0123456789abcdef"]);
    table.row("root accepts no other digest", ensure(wrong.status == Some(2), &wrong));
    let listed = policy(&host, ROOT, &["proposals"]);
    table.row(
        "root sees it",
        ensure(listed.stdout.contains(&digest) && listed.stdout.contains("echo"), &listed),
    );
    let accepted = policy(&host, ROOT, &["accept", &digest]);
    table.row("root accepts it", ensure(accepted.status == Some(0), &accepted));
    table.row("it is in force", equal(permitted(&client).await, json!([true, false, true])));
    let none = policy(&host, ROOT, &["proposals"]);
    table.row("and no proposal any more", equal(none.stdout.clone(), "there is no proposal\n".to_owned()));
    let invalid = policy(&host, PERSON, &["propose", &host.path("tools/wrong.toml").display().to_string()]);
    let is_shown = invalid.status == Some(2) && invalid.stderr.contains("the proposed policy:3");
    table.row("an invalid one is refused with its line", ensure(is_shown, &invalid));
    let nothing = policy(&host, PERSON, &["propose", &file]);
    table.row("a proposal that permits nothing", ensure(nothing.status == Some(0), &nothing));
    table.row("denies all", equal(permitted(&client).await, json!([false, false, false])));
    host.kill_engine();
    host.start_engine().await;
    table.row("also in the next engine", equal(permitted(&client).await, json!([false, false, false])));
    let withdrawn = policy(&host, PERSON, &["propose", "--withdraw"]);
    table.row("the person takes it back", ensure(withdrawn.status == Some(0), &withdrawn));
    table.row("the approved one is in force", equal(permitted(&client).await, json!([true, false, true])));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_of_the_system_a_policy_is_no_proposal() {
    if !can_manage() {
        return;
    }
    let host = Host::unmanaged(APPROVED);
    let refused = policy(&host, PERSON, &["propose"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no engine of the system serves this account"), "{refused:?}");
}
