//! Tests of event streams: their number is limited, and what they cost.

use lockhouse_tests::{Lockhouse, Page, PageEvents};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_open_pages_is_limited() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let mut open: Vec<PageEvents> = Vec::new();
    for _ in 0..250 {
        let mut events = browser.events().await;
        events.next("hello").await;
        open.push(events);
    }
    let refused = browser.try_events().await.expect_err("too many");
    assert!(refused.contains(" 503 "), "{refused}");
    assert_eq!(browser.post("/api/reload", json!({})).await.status, 200, "control: actions are possible");
    open.pop();
    loop {
        // The page process notices the closed connection soon.
        if browser.try_events().await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_gets_all_sections_at_once() {
    let lockhouse = Lockhouse::new();
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    for _ in 0..2 {
        for section in
            ["processes", "runs", "sessions", "approvals", "denials", "servers", "results", "savings"]
        {
            browser.events().await.next(section).await;
        }
    }
}
