//! Tests of `lockhouse page` and requirements: it ends when they change for it, and it runs nothing while Lockhouse is stopped.

use lockhouse_tests::{Lockhouse, Page, Table, ensure, equal, is_alive, wait_until};
use serde_json::json;

use super::{lockhouse, require, serve, server, with_requirements};

#[tokio::test(flavor = "multi_thread")]
async fn the_page_ends_when_the_requirements_for_it_change() {
    let mut table = Table::new("requirements that change while a page is open");
    for (what, requirements, ends) in [
        ("other tables", "[limits]\ncalls = 3\n[[denied]]\nname = \"other\"\n", false),
        ("its address", "[page]\nlisten = \"127.0.0.2:0\"\n", true),
        ("its administrators", "[page]\nadministrators = [\"boss\"]\n", true),
        ("the tokens", "[http]\ntokens = \"/nonexistent/tokens.json\"\n", true),
        ("the audit log", "[audit]\nvalues = true\n", true),
        ("an error", "[[denied]\n", true),
    ] {
        let lockhouse = Lockhouse::new().config("[page]\nlisten = \"127.0.0.1:0\"\n");
        require(&lockhouse, "");
        let page = Page::spawn_service(with_requirements(&lockhouse, &["page", "--service"])).await;
        let pid = page.pid();
        require(&lockhouse, requirements);
        if ends {
            wait_until("it ends", async || (!is_alive(pid)).then_some(())).await;
            table.row(format!("{what}: it ends"), Ok(()));
            continue;
        }
        // The next change is seen after this one.
        let reply = page.log_in("none").await;
        table.row(format!("{what}: it stays"), ensure(is_alive(pid) && reply.status != 0, reply));
        require(&lockhouse, "[page]\nadministrators = [\"boss\"]\n");
        wait_until("it ends", async || (!is_alive(pid)).then_some(())).await;
        table.row(format!("{what}: control: it ends with another change"), Ok(()));
    }
    table.finish();
}

/// The page runs nothing, so it stays: a person sees what has happened.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_stays_and_starts_nothing_while_lockhouse_is_stopped() {
    let notes = |lockhouse: &Lockhouse| lockhouse.path("notes");
    let lockhouse = lockhouse();
    let flag = format!("--notes={}", notes(&lockhouse).display());
    let lockhouse =
        lockhouse.config(&format!("{}args = [{flag:?}]\nidle_stop_seconds = 1\n", server("fixture")));
    require(&lockhouse, "");
    let session = serve(&lockhouse).await;
    let page = Page::spawn(with_requirements(&lockhouse, &["page", "--no-open"])).await;
    let browser = page.browser().await;
    let review = async || browser.post("/api/servers/review", json!({"server": "fixture"})).await;
    let mut table = Table::new("the page while Lockhouse is stopped");
    let before = review().await;
    table.row("control: it starts a server to review it", equal(before.status, 200));
    require(&lockhouse, "stop = \"incident 7\"\n");
    wait_until("it is stopped", async || {
        let answer = session.run_code("python", "1").await;
        (answer["error"]["type"] == "Stopped").then_some(())
    })
    .await;
    std::fs::remove_file(notes(&lockhouse)).unwrap();
    let reply = review().await;
    table.row("no server is started", ensure(reply.status != 200 && !notes(&lockhouse).exists(), &reply));
    let audit = browser.get("/api/audit?event=refusal").await;
    table.row("what happened is shown", ensure(audit.json().to_string().contains("incident 7"), audit));
    let stopped = lockhouse.run(&["stop"]);
    table.row("lockhouse stop ends what runs code", equal(stopped.status, Some(0)));
    let pid = session.pid();
    wait_until("the process ends", async || (!is_alive(pid)).then_some(())).await;
    table.row("the page stays", ensure(is_alive(page.pid()), page.pid()));
    table.finish();
}
