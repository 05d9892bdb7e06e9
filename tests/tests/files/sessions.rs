//! Files live as long as the worker: for one run, or for the runs of one session.

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::json;

#[tokio::test]
async fn files_stay_in_their_session() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("files and sessions");
    let write = "import os\nopen('a.txt', 'w').write('text')\nos.mkdir('d')\nos.chdir('d')";
    let list = "import os\n[os.getcwd(), sorted(os.listdir('/home/run'))]";
    session.run_in("one", "python", write).await;
    let typescript = "files.write('b.txt', 'x');\nfiles.list()";
    for (name, answer, expected) in [
        (
            "the same session",
            session.run_in("one", "python", list).await,
            json!(["/home/run/d", ["a.txt", "d"]]),
        ),
        ("another session", session.run_in("two", "python", list).await, json!(["/home/run", []])),
        ("no session", session.run_code("python", list).await, json!(["/home/run", []])),
        ("another language", session.run_in("three", "typescript", typescript).await, json!(["b.txt"])),
        ("the same again", session.run_in("three", "typescript", "files.list()").await, json!(["b.txt"])),
        ("no session of the other", session.run_code("typescript", "files.list()").await, json!([])),
    ] {
        table.row(name, equal(answer["value"].clone(), expected));
    }
    table.finish();
}
