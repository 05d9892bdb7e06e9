//! Tests of the browser that `lockhouse page` opens: its address has no secret, and only the own account gets in with it.

use lockhouse_tests::{
    Desktop, Lockhouse, OTHER_ACCOUNT, Page, Table, ensure, equal, get_as, get_confined, loopback_addresses,
    request,
};

const REFUSED: &str = "403";

#[tokio::test(flavor = "multi_thread")]
async fn another_account_that_comes_first_is_refused_and_the_own_one_gets_in() {
    let lockhouse = Lockhouse::new();
    let desktop = Desktop::new(&lockhouse);
    let page = Page::spawn(desktop.command(&lockhouse, &["page"])).await;
    let mut table = Table::new("the opened address");
    let port = page.port();
    table.row("the printed link names localhost", equal(page.address.clone(), format!("localhost:{port}")));
    table.row("it has no secret", equal(desktop.opened().await, format!("http://localhost:{port}/open")));
    if nix::unistd::geteuid().is_root() {
        for address in loopback_addresses() {
            for manner in ["once", "half-close", "leave"] {
                let answer = get_as(Some(OTHER_ACCOUNT), address, port, "/open", manner);
                // A server need not answer on a connection that its client has begun to close.
                let is_refused = answer == REFUSED || (manner != "once" && answer.is_empty());
                table.row(format!("another account at {address}, {manner}"), ensure(is_refused, answer));
            }
        }
    }
    for address in loopback_addresses() {
        let answer = get_confined(address, port, "/open", "once");
        table.row(format!("a sandboxed server at {address}"), equal(answer.as_str(), REFUSED));
    }
    for (name, header) in [
        ("a web page", ("Sec-Fetch-Site", "cross-site")),
        ("a web page of this host", ("Sec-Fetch-Site", "same-site")),
        ("a proxy", ("X-Forwarded-For", "10.0.0.1")),
    ] {
        let reply = page.send(request(&page.address, "GET", "/open", &[header], "")).await;
        table.row(name, equal((reply.status, reply.header("location")), (403, String::new())));
    }
    let reply = page.send(request("evil.test", "GET", "/open", &[], "")).await;
    table.row("a name of another host", equal(reply.status, 421));
    let reply = page.send(request(&page.address, "HEAD", "/open", &[], "")).await;
    table.row("another method", equal((reply.status, reply.header("location")), (405, String::new())));
    let opened = [("Sec-Fetch-Site", "none")];
    let reply = page.send(request(&page.address, "GET", "/open", &opened, "")).await;
    let location = reply.header("location");
    table.row("control: the own account", equal(reply.status, 303));
    let token = location.strip_prefix("/#token=").unwrap_or_default();
    table.row("it gets a link of its own", ensure(token.len() == 64 && token != page.token, &location));
    table.row("the link opens the page", equal(page.log_in(token).await.status, 200));
    table.row("once", equal(page.log_in(token).await.status, 401));
    for address in loopback_addresses() {
        table.row(
            format!("a second request at {address}"),
            equal(get_as(None, address, port, "/open", "once").as_str(), REFUSED),
        );
    }
    table.row("the printed link works too", equal(page.log_in(&page.token).await.status, 200));
    table.row("once, as well", equal(page.log_in(&page.token).await.status, 401));
    table.finish();
}

/// Both addresses of `localhost` are in use, so that no other account can receive what a browser sends to one of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_own_account_gets_in_at_both_addresses_of_localhost() {
    let mut table = Table::new("addresses of localhost");
    for address in loopback_addresses() {
        let lockhouse = Lockhouse::new();
        let desktop = Desktop::new(&lockhouse);
        let page = Page::spawn(desktop.command(&lockhouse, &["page"])).await;
        desktop.opened().await;
        let answer = get_as(None, address, page.port(), "/open", "once");
        table.row(address, ensure(answer.starts_with("303 /#token="), answer));
    }
    table.finish();
}

/// Behind a proxy, the requests of everybody come from the account of the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_a_proxy_may_use_opens_no_browser() {
    let mut table = Table::new("pages without a browser");
    let config = "[page]\nlisten = \"127.0.0.1:0\"\n";
    for arguments in [
        &["page", "--no-open"][..],
        &["page", "--listen", "127.0.0.1:0"],
        &["page", "--listen", "localhost:0"],
        &["page", "--service"],
    ] {
        let lockhouse = Lockhouse::new().config(config);
        let desktop = Desktop::new(&lockhouse);
        let command = desktop.command(&lockhouse, arguments);
        let name = arguments.join(" ");
        let page = Page::spawn(command).await;
        // The page answers, so what follows the printed line has happened.
        let reply = page.send(request(&page.address, "GET", "/", &[], "")).await;
        table.row(format!("{name}: control: it answers"), equal(reply.status, 200));
        table.row(format!("{name}: nothing is opened"), ensure(desktop.has_opened_nothing(), &name));
        let reply = page.send(request(&page.address, "GET", "/open", &[], "")).await;
        table.row(format!("{name}: nobody gets in"), equal(reply.status, 403));
    }
    table.finish();
}
