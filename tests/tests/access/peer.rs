//! Users of the machine, who are known by their end of a Unix domain socket.

use lockhouse_tests::{Door, Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::{asks, token, told, words};

async fn door(lockhouse: &Lockhouse) -> Door {
    let place = format!("unix:{}", lockhouse.path("run/mcp.sock").display());
    Door::open(lockhouse.command(&["serve", "--listen", &place])).await
}

fn own_name() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().map(|user| user.name).unwrap_or_default()
}

#[tokio::test]
async fn a_user_of_the_machine_is_known_by_the_connection() {
    let lockhouse = Lockhouse::new().config("[http]\nauth = [\"peer\", \"token\"]\n");
    let good = token(&lockhouse, &["desk"]);
    let door = door(&lockhouse).await;
    let mut table = Table::new("peers");
    let visitor = door.visitor(None);
    table.row("the one who runs it", equal(told(&asks(&visitor).await), "200".into()));
    visitor.run_code("python", "1").await;
    table.row("a token there", equal(told(&asks(&door.visitor(Some(&good))).await), "200".into()));
    door.visitor(Some(&good)).run_code("python", "1").await;
    // A token that does not count is not made good by the connection.
    table.row(
        "a wrong token there",
        equal(told(&asks(&door.visitor(Some("x"))).await), "401 invalid_token".into()),
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
async fn another_user_is_refused_and_over_tcp_nobody_is_known() {
    let mut table = Table::new("strangers");
    let lockhouse = Lockhouse::new().config("[http]\nauth = \"peer\"\nusers = [54321]\n");
    let door_of_another = door(&lockhouse).await;
    let reply = asks(&door_of_another.visitor(None)).await;
    table.row("not among users", equal(told(&reply), "403 access_denied".into()));
    table.row("in words", ensure(words(&reply).contains("not among those"), &reply.body));
    door_of_another.says("a request of user ").await;
    let lockhouse = Lockhouse::new().config("[http]\nauth = \"peer\"\n");
    let door = lockhouse.door().await;
    table.row("over TCP", equal(told(&asks(&door.visitor(None)).await), "401 unauthorized".into()));
    table.finish();
}
