//! Tests that an error about a file of this machine names its cause, and that nothing fails silently.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

const CONFIG: &str = "[servers.files]\nread = [\"~/data\"]\nwrite = [\"~/out\"]\n";

fn lockhouse(config: &str, policy: &str) -> Lockhouse {
    let policy = format!("version = 1\n[servers.files]\n{policy}\n");
    let lockhouse = Lockhouse::outside_tmp().config(config).policy(&policy);
    lockhouse.file("home/data/a.csv", "1\n");
    lockhouse.file("home/data/sub/b.csv", "2\n");
    std::fs::create_dir_all(lockhouse.path("home/out")).unwrap();
    lockhouse
}

/// Returns a program whose value is the error of `expression`, or its value.
fn attempt(expression: &str) -> String {
    format!(
        "import os, glob\nfrom pathlib import Path\ntry: r = {expression}\nexcept Exception as e: r = f'{{type(e).__name__}}: {{e}}'\nr"
    )
}

#[test]
fn a_refusal_names_the_file_that_a_person_must_change() {
    let add_path = "a person can add a path to `read` of [servers.files] in the configuration";
    let add_rule = "a person can add \"read\" to `allow` or `ask` of [servers.files] in the policy";
    let write = "a person can add \"write\" to `allow` or `ask` of [servers.files] in the policy";
    let rows: [(&str, &str, &str, &[&str], &[&str]); 7] = [
        ("no policy", CONFIG, "~/data/a.csv", &[add_rule], &[add_path]),
        (
            "no path",
            "[servers.files]\nwrite = [\"~/out\"]\n",
            "~/data/a.csv",
            &[add_path, "which are: none;"],
            &[],
        ),
        ("neither", CONFIG, "~/none/a.csv", &[add_path, add_rule], &[]),
        ("no policy to write", CONFIG, "w ~/out/a.csv", &[write], &["to `write`"]),
        ("no path to write", CONFIG, "w ~/data/a.csv", &["add a path to `write`", write], &[]),
        ("the policy permits it", CONFIG, "allow ~/data/a.csv", &["1\n"], &["Error"]),
        ("elsewhere", CONFIG, "allow ~/none/a.csv", &[add_path, "/home/data;"], &["policy"]),
    ];
    let mut table = Table::new("refusals");
    for (name, config, path, expected, others) in rows {
        let (mode, path) = path.split_once(' ').unwrap_or(("", path));
        let policy = if mode == "allow" { "allow = [\"read\"]" } else { "" };
        let lockhouse = lockhouse(config, policy);
        let mode = if mode == "w" { "w" } else { "r" };
        let python = attempt(&format!("open({path:?}, {mode:?}).read()"));
        let operation = if mode == "w" {
            format!("await writeFile({path:?}, '')")
        } else {
            format!("await readFile({path:?}, 'utf8')")
        };
        let typescript = format!(
            "import {{ readFile, writeFile }} from 'node:fs/promises';\nlet r; try {{ r = {operation} }} catch (e) {{ r = `${{e.name}}: ${{e.message}}` }}; r"
        );
        for (language, code) in [("python", &python), ("typescript", &typescript)] {
            let answer = lockhouse.answer(language, code);
            let got = answer["value"].as_str().unwrap_or_default();
            let holds = expected.iter().all(|words| got.contains(words))
                && !others.iter().any(|words| got.contains(words));
            table.row(format!("{name}, {language}"), ensure(holds, &answer));
        }
    }
    table.finish();
}

#[test]
fn where_only_reading_is_permitted_an_empty_list_is_explained() {
    let only_read = lockhouse(CONFIG, "allow = [\"read\"]");
    let all = lockhouse(CONFIG, "allow = [\"*\"]");
    let folder = |lockhouse: &Lockhouse| lockhouse.path("home/data").display().to_string();
    let cause = "the policy does not allow files/";
    let mut table = Table::new("programs");
    for (expression, with_all) in [
        ("glob.glob('@/*.csv')", json!(["@/a.csv"])),
        ("glob.glob('@/**/*.csv', recursive=True)", json!(["@/a.csv", "@/sub/b.csv"])),
        ("[str(p) for p in Path('@').glob('*.csv')]", json!(["@/a.csv"])),
        ("[str(p) for p in Path('@').rglob('*.csv')]", json!(["@/a.csv", "@/sub/b.csv"])),
        (
            "[[d, sorted(n), f] for d, n, f in os.walk('@')]",
            json!([["@", ["sub"], ["a.csv"]], ["@/sub", [], ["b.csv"]]]),
        ),
        ("os.path.exists('@/a.csv')", json!(true)),
        ("sorted(os.listdir('@'))", json!(["a.csv", "sub"])),
        ("open('@/a.csv').read()", json!("1\n")),
    ] {
        let code = |lockhouse: &Lockhouse| attempt(&expression.replace('@', &folder(lockhouse)));
        let got = all.answer("python", &code(&all));
        let text = with_all.to_string().replace('@', &folder(&all));
        let expected: Value = serde_json::from_str(&text).unwrap();
        table.row(
            expression,
            equal(sorted(&got["value"]), sorted(&expected)).map_err(|e| format!("{e} {got}")),
        );
        table.row(format!("{expression}: no note"), equal(&got["stderr"], &Value::Null));
        let got = only_read.answer("python", &code(&only_read));
        let is_explained = got["value"] == "1\n" || got.to_string().contains(cause);
        table.row(format!("{expression}, only read"), ensure(is_explained, &got));
    }
    for (call, with_all) in
        [("readdirSync('@').sort()", json!(["a.csv", "sub"])), ("existsSync('@/a.csv')", json!(true))]
    {
        let code = |lockhouse: &Lockhouse| {
            let call = call.replace('@', &folder(lockhouse));
            format!(
                "import {{ readdirSync, existsSync }} from 'node:fs';\nlet r; try {{ r = {call} }} catch (e) {{ r = e.message }}; r"
            )
        };
        table.row(call, equal(&all.answer("typescript", &code(&all))["value"], &with_all));
        let got = only_read.answer("typescript", &code(&only_read));
        table.row(format!("{call}, only read"), ensure(got.to_string().contains(cause), &got));
    }
    let missing = all.answer("python", &attempt(&format!("os.path.exists('{}/none')", folder(&all))));
    table.row(
        "a file that is missing has no note",
        equal((&missing["value"], &missing["stderr"]), (&json!(false), &Value::Null)),
    );
    table.finish();
}

fn sorted(value: &Value) -> Vec<String> {
    let mut texts: Vec<String> = value.as_array().into_iter().flatten().map(Value::to_string).collect();
    texts.sort();
    if texts.is_empty() { vec![value.to_string()] } else { texts }
}

#[test]
fn a_folder_with_too_many_entries_is_an_error_and_not_a_part_of_it() {
    let lockhouse = lockhouse(CONFIG, "allow = [\"*\"]");
    for number in 0..1_001 {
        lockhouse.file(&format!("home/data/many/{number}.txt"), "");
    }
    let path = lockhouse.path("home/data/many").display().to_string();
    let words = "the folder has more than 1,000 entries";
    let mut table = Table::new("programs");
    for expression in ["os.listdir('@')", "glob.glob('@/*')"] {
        let answer = lockhouse.answer("python", &attempt(&expression.replace('@', &path)));
        table.row(expression, ensure(answer.to_string().contains(words), &answer));
    }
    std::fs::remove_file(lockhouse.path("home/data/many/0.txt")).unwrap();
    let answer = lockhouse.answer("python", &attempt(&format!("len(os.listdir('{path}'))")));
    table.row("the limit", equal(&answer["value"], &json!(1_000)));
    table.finish();
}

/// A failed write leaves the file as it was, so it is not among the calls that may have changed something.
#[test]
fn a_failed_write_is_no_call_that_may_have_changed_something() {
    let lockhouse = lockhouse(CONFIG, "allow = [\"*\"]");
    let program = |path: &str| {
        let path = lockhouse.path("home/out").join(path).display().to_string();
        format!("try: open({path:?}, 'w').write('x')\nexcept OSError: pass\n1 / 0")
    };
    let failed = lockhouse.answer("python", &program("none/a"));
    let written = lockhouse.answer("python", &program("a"));
    let mut table = Table::new("errors");
    table.row("not_found", ensure(!failed["error"].to_string().contains("may change something"), &failed));
    let words = "1 call that may change something was already made: files.write";
    table.row("control: written", ensure(written["error"].to_string().contains(words), &written));
    table.row("the outcome", ensure(failed["calls"].to_string().contains("not_found"), &failed));
    table.finish();
}
