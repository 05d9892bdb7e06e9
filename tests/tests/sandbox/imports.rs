//! Tests of imports of modules that the sandboxed worker does not have: the error says why, and what to use instead.

use lockhouse_tests::{Lockhouse, Table, ensure};

const UNAVAILABLE: &str = "not available in the Lockhouse sandbox";

#[test]
fn importing_an_unavailable_module_says_why() {
    let rows = [
        ("python", "import requests", "there is no network"),
        ("python", "import urllib.request", "there is no network"),
        ("python", "import multiprocessing", "processes cannot be started"),
        ("python", "import no_such_module", "lockhouse python add no_such_module"),
        ("typescript", "import net from 'net'", UNAVAILABLE),
        ("typescript", "const net = require('node:net')", UNAVAILABLE),
        ("typescript", "const x = await import('axios')", UNAVAILABLE),
        ("typescript", "import * as std from 'std'", UNAVAILABLE),
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

/// A Python module that starts a thread at import, unless `OPENBLAS_NUM_THREADS` is 1. It imitates OpenBLAS in numpy.
const STARTS_THREADS_BY_DEFAULT: &str = "import os, threading
if os.environ.get('OPENBLAS_NUM_THREADS') != '1':
    threading.Thread(target=threading.Event().wait, daemon=True).start()
";
const ALWAYS_STARTS_THREADS: &str =
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n";

#[test]
fn a_library_that_starts_threads_is_preloaded_without_them() {
    let lockhouse = Lockhouse::new();
    let place = lockhouse.path("venv");
    let made =
        std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&place).status();
    assert!(made.unwrap().success());
    let libraries = std::fs::read_dir(place.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(libraries.join("site-packages/pooled.py"), STARTS_THREADS_BY_DEFAULT).unwrap();
    std::fs::write(libraries.join("site-packages/threaded.py"), ALWAYS_STARTS_THREADS).unwrap();
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
    // A library that starts threads regardless is refused with a reason.
    let lockhouse = lockhouse.config(&config("threaded"));
    let refused = lockhouse.run(&["run", "-c", "1", "--language", "python"]);
    assert!(refused.status == Some(7) && refused.stderr.contains("threads"), "{refused:?}");
}
