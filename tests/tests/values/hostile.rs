//! Tests of values that would be much more expensive to process than their size suggests.

use lockhouse_tests::{Lockhouse, Table, ensure};

#[tokio::test]
async fn values_with_millions_of_parts_are_cheap_to_show() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("hostile values");
    for (language, code) in [
        ("python", "[0] * 1_500_000"),
        ("python", "[[]] * 1_000_000"),
        ("python", "{str(i): {} for i in range(500_000)}"),
        ("python", "'\\0' * 1_300_000"),
        ("python", "['\\0' * 100] * 12_000"),
        ("python", "{'k' * 8_000_000: 1}"),
        ("python", "v = [1] * 1_000_000\nfor _ in range(100): v = [v]\nv"),
        ("python", "v = 1\nfor _ in range(100): v = {'a': v, 'b': 'x' * 80_000}\nv"),
        ("typescript", "Array(1_500_000).fill(0)"),
        ("typescript", "'\\0'.repeat(1_300_000)"),
        (
            "typescript",
            "let v: any = 'x'.repeat(1000); for (let i = 0; i < 110; i++) v = [v, 'x'.repeat(70_000)]; v",
        ),
    ] {
        let answer = session.run_code(language, code).await;
        let bytes = answer.to_string().len();
        // JSON takes six bytes for a control character.
        let right = answer["status"] == "ok" && bytes < 70_000;
        table.row(format!("{language}: {code}"), ensure(right, (bytes, &answer["error"])));
    }
    // The supervisor still works.
    let answer = session.run_code("python", "1 + 1").await;
    table.row("the next program", ensure(answer["value"] == 2, &answer));
    table.finish();
}
