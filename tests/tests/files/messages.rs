//! The messages of the file system that are Lockhouse's own, as snapshots: where it differs from a file system on disk.

use std::fmt::Write as _;

use lockhouse_tests::Lockhouse;

use crate::files::programs;

#[tokio::test]
async fn messages_say_what_to_do() {
    let lockhouse = Lockhouse::new().config("[limits]\nmemory_mib = 64\n");
    let session = lockhouse.serve().await;
    for (language, text) in [
        ("python", include_str!("programs/python_messages.txt")),
        ("typescript", include_str!("programs/typescript_messages.txt")),
    ] {
        let mut reported = String::new();
        for (name, code) in programs(text) {
            let answer = session.run_code(language, code).await;
            let _ = writeln!(reported, "=== {name}\n{}\n---", code.trim_end());
            for (key, value) in [
                ("type", &answer["error"]["type"]),
                ("message", &answer["error"]["message"]),
                ("hint", &answer["error"]["hint"]),
                ("value", &answer["value"]),
                ("stderr", &answer["stderr"]),
            ] {
                if !value.is_null() {
                    let _ = writeln!(reported, "{key}: {value}");
                }
            }
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("{language}_messages"), reported);
        });
    }
}
