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

/// As OpenBLAS under numpy: it starts a thread for each core as it is loaded, unless it is told not to.
const POOLED: &str = "import os, threading
if os.environ.get('OPENBLAS_NUM_THREADS') != '1':
    threading.Thread(target=threading.Event().wait, daemon=True).start()
";
const THREADED: &str =
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n";

#[test]
fn a_library_that_would_start_threads_is_preloaded_without_them() {
    let lockhouse = Lockhouse::new();
    let place = lockhouse.path("venv");
    let made =
        std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&place).status();
    assert!(made.unwrap().success());
    let libraries = std::fs::read_dir(place.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(libraries.join("site-packages/pooled.py"), POOLED).unwrap();
    std::fs::write(libraries.join("site-packages/threaded.py"), THREADED).unwrap();
    let config = |module: &str| {
        format!(
            "[python]\ninterpreter = \"{}\"\npreload = [\"{module}\"]\n",
            place.join("bin/python").display()
        )
    };
    let code = "import os, pooled\n[pooled.threading.active_count(), 'OPENBLAS_NUM_THREADS' in os.environ]";
    let lockhouse = lockhouse.config(&config("pooled"));
    let answer = lockhouse.answer("python", code);
    assert_eq!(answer["value"], serde_json::json!([1, false]), "{answer}");
    // One that starts them all the same is refused, in words.
    let lockhouse = lockhouse.config(&config("threaded"));
    let refused = lockhouse.run(&["run", "-c", "1", "--language", "python"]);
    assert!(refused.status == Some(7) && refused.stderr.contains("threads"), "{refused:?}");
}
