//! Modules that a sealed worker does not have: the error says why, and what to do instead.

use lockhouse_tests::{Lockhouse, Table, ensure};

const WORDS: &str = "not available in the Lockhouse sandbox";

#[test]
fn importing_what_is_not_there_says_why() {
    let rows = [
        ("python", "import requests", "there is no network"),
        ("python", "import urllib.request", "there is no network"),
        ("python", "import multiprocessing", "processes cannot be started"),
        ("python", "import no_such_module", "[python] preload"),
        ("python", "import fixture", "mcp_tools.fixture"),
        ("typescript", "import fs from 'fs'", WORDS),
        ("typescript", "const fs = require('node:fs')", WORDS),
        ("typescript", "const x = await import('axios')", WORDS),
        ("typescript", "import * as std from 'std'", WORDS),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("imports");
    for (language, code, words) in rows {
        let answer = lockhouse.answer(language, code);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {code}"), ensure(message.contains(words), &answer));
    }
    table.finish();
}
