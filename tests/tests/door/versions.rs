//! Every version of the protocol.

use lockhouse_tests::{ALL_VERSIONS, LATEST_VERSION, Lockhouse, Table, equal};

use crate::OPEN;

#[tokio::test]
async fn every_version_runs_code_over_http() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let door = lockhouse.door().await;
    let mut table = Table::new("versions over HTTP");
    for version in ALL_VERSIONS {
        let visitor = match version {
            LATEST_VERSION => door.visitor(None),
            earlier => door.session(None, earlier).await,
        };
        let answer = visitor.run_code("python", "6 * 7").await;
        table.row(version, equal(&answer["value"], &42.into()));
    }
    table.finish();
    assert_eq!(door.terminate().await.status, Some(0));
}
