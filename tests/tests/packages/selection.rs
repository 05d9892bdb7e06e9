//! Tests of which programs get a worker with packages, and of the errors of the others.

use lockhouse_tests::{Lockhouse, Table, children, ensure, equal, wait_until};
use serde_json::Value;

use super::environments;

/// A package whose module counts how often it was executed in this process, and has a random number.
const DEMO: &str = "import random\nrandom_generator = random.Random()\nvalue = 42\n";
/// A package that imports a part of itself when a function is called, as pandas does.
const LAZY: &str = "def part():\n    import lazy_part\n    return lazy_part.value\n";

fn lockhouse(keys: &str) -> Lockhouse {
    let lockhouse = Lockhouse::new();
    let environment = lockhouse.path("venv");
    environments::create(
        &environment,
        &[("demo_package", DEMO), ("lazy", LAZY), ("lazy_part", "value = 7\n")],
    );
    let config = format!(
        "[python]\nenvironment = {:?}\npackages = [\"demo-package\", \"lazy\"]\n{keys}",
        environment.display().to_string()
    );
    // `demo-package` is the name of the distribution; installers treat `-` and `_` alike.
    lockhouse.config(&config)
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn only_programs_that_import_a_package_get_a_worker_with_packages() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let mut table = Table::new("workers with packages");
    let loaded = "import sys\n'demo_package' in sys.modules";
    let answer = session.run_code("python", loaded).await;
    table.row("a program without packages", ensure(answer["value"] == false, &answer));
    table.row("its zygote is the only Python zygote", ensure(children(session.pid()).len() == 2, ""));
    for (name, code, value) in [
        ("import", "import demo_package\ndemo_package.value", "42"),
        ("from", "from demo_package import value\nvalue", "42"),
        (
            "a comment with the words",
            "# import demo_package\nimport sys\n'demo_package' in sys.modules",
            "true",
        ),
        ("a module that is imported after the seal", "import lazy\nlazy.part()", "7"),
        ("importlib", "import importlib\nimportlib.import_module('demo_package').value", "42"),
        ("one thread", "import lazy, threading\nthreading.active_count()", "1"),
        ("the environment is hidden", "import lazy, os\nlist(os.environ)", "[\"LC_CTYPE\"]"),
    ] {
        let answer = session.run_code("python", code).await;
        table.row(name, equal(answer["value"].to_string(), value.to_owned()));
    }
    table.row("a second Python zygote was started", ensure(children(session.pid()).len() == 3, ""));
    let code = "import demo_package\ndemo_package.random_generator.random()";
    let (first, second) = (session.run_code("python", code).await, session.run_code("python", code).await);
    table.row(
        "generators of packages are seeded in each worker",
        ensure(first["value"] != second["value"], &first),
    );
    let typescript = session.run_code("typescript", "import x from 'demo_package'").await;
    table.row("TypeScript has no Python packages", ensure(typescript["status"] == "error", &typescript));
    table.finish();
}

#[tokio::test]
async fn errors_say_how_to_get_a_package() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let mut table = Table::new("errors of imports");
    for (code, words) in [
        ("import no_package_of_anybody", "lockhouse python add no_package_of_anybody"),
        ("import sklearn", "lockhouse python add scikit-learn"),
        ("import requests", "there is no network; use a tool"),
        ("import numba", "machine code cannot be generated"),
        // The scan does not see this import.
        ("name = 'demo_' + 'package'\n__import__(name)", "write `import demo_package` in the program"),
    ] {
        let answer = session.run_code("python", code).await;
        table.row(code, ensure(message(&answer).contains(words), &answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_session_has_the_packages_of_its_first_run() {
    let lockhouse = lockhouse("");
    let session = lockhouse.serve().await;
    let mut table = Table::new("sessions with packages");
    let plain = session.run_in("plain", "python", "1 + 1").await;
    table.row("a session without packages", ensure(plain["value"] == 2, &plain));
    let late = session.run_in("plain", "python", "import demo_package").await;
    table
        .row("a later import says why it fails", ensure(message(&late).contains("use a new session"), &late));
    let first = session.run_in("data", "python", "import demo_package as d").await;
    table.row("a session with packages", ensure(first["status"] == "ok", &first));
    let next = session.run_in("data", "python", "d.value").await;
    table.row("keeps them", ensure(next["value"] == 42, &next));
    let lazy = session.run_in("data", "python", "import lazy\nlazy.part()").await;
    table.row("and has all others", ensure(lazy["value"] == 7, &lazy));
    table.finish();
}

#[tokio::test]
async fn packages_that_cannot_be_loaded_leave_other_programs_alone() {
    let lockhouse = Lockhouse::new();
    let environment = lockhouse.path("venv");
    let threaded = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n";
    environments::create(&environment, &[("broken", "1 / 0\n"), ("threaded", threaded)]);
    let path = environment.display().to_string();
    let mut table = Table::new("packages that cannot be loaded");
    for (packages, module, words) in [
        ("\"broken\"", "broken", "'broken' cannot be imported: ZeroDivisionError"),
        ("\"threaded\"", "threaded", "started 1 threads"),
        ("\"absent\"", "absent", "lockhouse python add absent"),
    ] {
        let config = format!("[python]\nenvironment = {path:?}\npackages = [{packages}]\n");
        let lockhouse = Lockhouse::new().config(&config);
        let session = lockhouse.serve().await;
        let answer = session.run_code("python", &format!("import {module}")).await;
        table.row(module, ensure(message(&answer).contains(words), &answer));
        let other = session.run_code("python", "1 + 1").await;
        table.row(format!("{module}: another program"), ensure(other["value"] == 2, &other));
    }
    let config = "[python]\npackages = [\"pandas\"]\n";
    let answer = Lockhouse::new().config(config).answer("python", "import pandas");
    table.row("no environment", ensure(message(&answer).contains("lockhouse python lock"), &answer));
    for packages in ["-r x", "a @ http://b", "../a", ""] {
        let lockhouse = Lockhouse::new().config(&format!("[python]\npackages = [{packages:?}]\n"));
        let refused = lockhouse.run(&["run", "-c", "1", "--language", "python"]);
        let is_refused = refused.status == Some(2) && refused.stderr.contains("no name of a Python package");
        table.row(format!("the name {packages:?}"), ensure(is_refused, refused));
    }
    table.finish();
}

#[tokio::test]
async fn packages_have_limits_of_their_own_and_are_unloaded_when_unused() {
    let lockhouse =
        lockhouse("packages_memory_mib = 64\npackages_idle_seconds = 10\n[limits]\nmemory_mib = 512\n");
    let session = lockhouse.serve().await;
    let allocate = "x = bytearray(150 * 1024 * 1024)\nlen(x)";
    let plain = session.run_code("python", allocate).await;
    assert_eq!(plain["value"], 150 * 1024 * 1024, "{plain}");
    let limited = session.run_code("python", &format!("import lazy\n{allocate}")).await;
    assert!(message(&limited).contains("64 MiB"), "{limited}");
    assert_eq!(children(session.pid()).len(), 3);
    // The zygote ends by itself, and the next program starts another one.
    let ended = async || (children(session.pid()).len() == 2).then_some(());
    wait_until("the zygote ends", ended).await;
    let again = session.run_code("python", "import lazy\nlazy.part()").await;
    assert_eq!(again["value"], 7, "{again}");
}

#[tokio::test]
async fn a_reload_changes_the_packages() {
    let lockhouse = Lockhouse::new();
    let environment = lockhouse.path("venv");
    environments::create(&environment, &[("first", "value = 1\n"), ("second", "value = 2\n")]);
    let config = |packages: &str| {
        let path = environment.display().to_string();
        format!("[python]\nenvironment = {path:?}\npackages = [{packages}]\n")
    };
    let lockhouse = lockhouse.config(&config("\"first\""));
    let session = lockhouse.serve().await;
    let loaded = "import first, sys\n'second' in sys.modules";
    let answer = session.run_code("python", loaded).await;
    assert_eq!(answer["value"], false, "{answer}");
    let lockhouse = lockhouse.config(&config("\"first\", \"second\""));
    let reloaded = lockhouse.run(&["reload", "--json"]);
    assert!(reloaded.stdout.contains("\"restart_required\": []"), "{reloaded:?}");
    let answer = session.run_code("python", loaded).await;
    assert_eq!(answer["value"], true, "{answer}");
}

#[test]
fn a_package_that_is_used_without_an_import_is_named() {
    let lockhouse = Lockhouse::new();
    let environment = lockhouse.path("venv");
    environments::create(&environment, &[("pandas", "value = 1\n"), ("demo_package", DEMO)]);
    let config = format!(
        "[python]\nenvironment = {:?}\npackages = [\"pandas\", \"demo-package\"]\n",
        environment.display().to_string()
    );
    let lockhouse = lockhouse.config(&config);
    let mut table = Table::new("names of packages");
    for (code, hint) in [
        ("pd.value", "write `import pandas as pd` first"),
        ("pandas.value", "write `import pandas` first"),
        ("demo_package.value", "write `import demo_package` first"),
        ("math.sqrt(4)", "write `import math` first"),
    ] {
        let answer = lockhouse.answer("python", code);
        table.row(code, ensure(answer["error"]["hint"] == hint, &answer["error"]));
    }
    let absent = lockhouse.answer("python", "np.array([1])");
    let hint = absent["error"]["hint"].as_str().unwrap_or_default();
    table.row("not installed", ensure(hint.starts_with("np would be numpy: "), &absent["error"]));
    let imported = lockhouse.answer("python", "import pandas as pd\npd.value");
    table.row("control", equal(&imported["value"], &Value::from(1)));
    table.finish();
}
