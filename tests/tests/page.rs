//! Tests of the live page (`lockhouse page`), over HTTP as a browser or an attacker sends it. tests/page drives it with a
//! real browser.

mod actions;
mod audit_log;
mod downloads;
mod hostile_texts;
mod login;
mod oauth_login;
mod opening;
mod requests;
mod sections;
mod service;
mod streams;

use lockhouse_tests::{Lockhouse, Page, PageBrowser, Session};

/// The tool `add` requires approval, `delete_everything` is denied by a rule, and `fail` matches nothing.
const POLICY: &str = "\
version = 1

[servers.fixture]
allow = [\"echo\", \"text\", \"big\", \"slow\", \"count\"]
ask = [\"add\"]
deny = [\"delete_*\"]
";

/// A running server with its page, in which a browser has a session.
struct Scene {
    lockhouse: Lockhouse,
    session: Session,
    page: Page,
    browser: PageBrowser,
}

impl Scene {
    async fn new() -> Self {
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
        let session = lockhouse.serve().await;
        let page = Page::start(&lockhouse, &[]).await;
        let browser = page.browser().await;
        Self { lockhouse, session, page, browser }
    }
}
