//! Tests of the authentication of local users by peer credentials: the user id that the kernel reports for a Unix
//! domain socket connection.

use std::path::Path;

use lockhouse_tests::{
    Daemon, Lockhouse, OTHER_ACCOUNT, Table, UnixUser, ensure, equal, permit_all_accounts,
};
use serde_json::{Value, json};

use crate::access::{error_description, list_tools, status_and_error, token};

async fn daemon(lockhouse: &Lockhouse) -> Daemon {
    let location = format!("unix:{}", lockhouse.path("run/mcp.sock").display());
    Daemon::open(lockhouse.command(&["serve", "--listen", &location])).await
}

fn own_name() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().map(|user| user.name).unwrap_or_default()
}

#[tokio::test]
async fn a_local_user_is_authenticated_by_peer_credentials() {
    let lockhouse = Lockhouse::new().config("[http]\nauth = [\"peer\", \"token\"]\n");
    let good = token(&lockhouse, &["desk"]);
    let daemon = daemon(&lockhouse).await;
    let mut table = Table::new("peers");
    let http_client = daemon.http_client(None);
    table.row(
        "the user who runs the daemon",
        equal(status_and_error(&list_tools(&http_client).await), "200".into()),
    );
    http_client.run_code("python", "1").await;
    table.row(
        "a token there",
        equal(status_and_error(&list_tools(&daemon.http_client(Some(&good))).await), "200".into()),
    );
    daemon.http_client(Some(&good)).run_code("python", "1").await;
    // An invalid token is rejected although the connection identifies a user.
    table.row(
        "a wrong token there",
        equal(
            status_and_error(&list_tools(&daemon.http_client(Some("x"))).await),
            "401 invalid_token".into(),
        ),
    );
    let clients: Vec<Value> = lockhouse
        .records()
        .into_iter()
        .filter(|record| record["event"] == "execution")
        .map(|record| record["client"].clone())
        .collect();
    table.row("in the log", equal(clients, vec![format!("user:{}", own_name()).into(), "desk".into()]));
    table.finish();
}

#[tokio::test]
async fn another_local_user_is_rejected_and_tcp_has_no_peer_credentials() {
    let mut table = Table::new("users without access");
    let lockhouse = Lockhouse::new().config("[http]\nauth = \"peer\"\nusers = [54321]\n");
    let daemon_of_another = daemon(&lockhouse).await;
    let reply = list_tools(&daemon_of_another.http_client(None)).await;
    table.row("not among users", equal(status_and_error(&reply), "403 access_denied".into()));
    table.row(
        "the error message",
        ensure(error_description(&reply).contains("not allowed to use this server"), &reply.body),
    );
    daemon_of_another.wait_for_log("a request from user ").await;
    let lockhouse = Lockhouse::new().config("[http]\nauth = \"peer\"\n");
    let daemon = lockhouse.daemon().await;
    table.row(
        "over TCP",
        equal(status_and_error(&list_tools(&daemon.http_client(None)).await), "401 unauthorized".into()),
    );
    table.finish();
}

/// An account without any process or file, that the configuration does not name.
const UNLISTED_ACCOUNT: &str = "61503";

#[tokio::test(flavor = "multi_thread")]
async fn each_user_of_one_socket_is_a_client_of_their_own() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut table = Table::new("users of one socket");
    let config = format!("[http]\nauth = \"peer\"\nusers = [\"root\", {OTHER_ACCOUNT}]\n");
    let lockhouse = Lockhouse::new().config(&config);
    let socket = lockhouse.path("run/mcp.sock");
    let command = lockhouse.command(&["serve", "--listen", &format!("unix:{}", socket.display())]);
    let daemon = Daemon::open(command).await;
    permit_all_accounts(&socket);
    let connect = |account| UnixUser::connect(account, Path::new(&socket));
    let (mut own, mut other) = (connect(None), connect(Some(OTHER_ACCOUNT)));
    let mut unlisted = connect(Some(UNLISTED_ACCOUNT));
    table.row("root", equal(own.run("1"), json!(1)));
    table.row("another user", equal(other.run("2"), json!(2)));
    let refused = equal(unlisted.run("3"), json!([403, "access_denied"]));
    table.row("a user who is not listed", refused);
    drop(other);
    let closed = UnixUser::connect_confined(&socket).run("6");
    let is_closed =
        closed.as_str().is_some_and(|error| error.contains("Disconnected") || error.contains("Error"));
    table.row("a sandboxed upstream server", ensure(is_closed, closed));
    table.row("root again", equal(own.run("4"), json!(4)));
    let again = connect(Some(OTHER_ACCOUNT)).run("5");
    table.row("the other user on a new connection", equal(again, json!(5)));
    assert_eq!(daemon.terminate().await.status, Some(0));
    let records = lockhouse.records();
    let runs = records.iter().filter(|record| record["event"] == "execution");
    let clients: Vec<&Value> = runs.map(|record| &record["client"]).collect();
    let other = format!("user:{OTHER_ACCOUNT}");
    let expected = ["user:root", &other, "user:root", &other];
    table.row("in the audit log", equal(json!(clients), json!(expected)));
    table.finish();
}
