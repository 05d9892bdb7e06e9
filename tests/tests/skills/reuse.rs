//! Tests of programs that import saved skills.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::skills::{giving, lockhouse, saving, using};

const PYTHON: &str = "\
import re
import skills
from mcp_tools.fixture import add

LIMIT = 2
WORDS = re.compile('[a-z]+')


class Total:
    start = 0


def words(text):
    return WORDS.findall(text)[:LIMIT]


def unused():
    return missing


def weekly_report(text: str, n: int = 1) -> dict:
    \"\"\"Counts the words of a text.\"\"\"
    found = words(text)
    return {'words': found, 'sum': add(a=len(found), b=n)['sum'] + Total.start}


skills.save(weekly_report, tags=['report'], tests='from skills.weekly_report import weekly_report\\nassert weekly_report(\"a\")[\"sum\"] == 2')
";

const TYPESCRIPT: &str = "\
import { add } from \"mcp_tools/fixture\";
import { save } from \"skills\";

const LIMIT = 2;
type Report = { words: string[]; sum: number };
enum Start { Zero }
const words = (text: string): string[] => (text.match(/[a-z]+/g) ?? []).slice(0, LIMIT);
function unused() { return missing; }

async function weeklyReport(text: string, n = 1): Promise<Report> {
  const found = words(text);
  return { words: found, sum: (await add(found.length, n)).sum + Start.Zero };
}

await save({ fn: weeklyReport, description: \"Counts the words of a text.\", tags: [\"report\"],
  tests: \"import { weeklyReport } from 'skills/weekly_report'; if ((await weeklyReport('a')).sum !== 2) throw new Error('no')\" });
";

#[test]
fn a_function_is_saved_with_its_dependencies_and_imported_by_another_program() {
    let mut table = Table::new("a function, saved and imported");
    let expected = json!({"words": ["one", "two"], "sum": 5});
    for (language, program, uses) in [
        (
            "python",
            PYTHON,
            [
                "from skills.weekly_report import weekly_report\nweekly_report('one two three', n=3)",
                "import skills.weekly_report as w\nw.weekly_report('one two three', n=3)",
                "from skills import weekly_report\nweekly_report.weekly_report('one two three', n=3)",
                "import skills\nexec(skills.search('weekly reports')[0]['import'])\nweekly_report('one two three', 3)",
            ],
        ),
        (
            "typescript",
            TYPESCRIPT,
            [
                "import { weeklyReport } from \"skills/weekly_report\";\nawait weeklyReport('one two three', 3)",
                "import * as w from \"skills/weeklyReport\";\nawait w.weeklyReport('one two three', 3)",
                "const { weeklyReport } = await import(\"skills/weekly-report\");\nawait weeklyReport('one two three', 3)",
                "const [{ name }] = await skills.search('weekly reports');\n(await import(`skills/${name}`)).weeklyReport('one two three', 3)",
            ],
        ),
    ] {
        let lockhouse = lockhouse();
        let saved = lockhouse.answer(language, program);
        let state = (&saved["value"]["name"], &saved["value"]["version"], &saved["value"]["state"]);
        let told = (&json!("weekly-report"), &json!(1), &json!("saved"));
        table.row(
            format!("{language}: it is saved"),
            equal(state, told).map_err(|why| format!("{why} {saved}")),
        );
        for program in uses {
            let answer = lockhouse.answer(language, program);
            let named = format!("{language}: {}", program.lines().next().unwrap_or_default());
            table.row(named, ensure(answer["value"] == expected, &answer));
        }
        let list = lockhouse.answer(
            language,
            if language == "python" { "import skills\nskills.list()" } else { "await skills.list()" },
        );
        let row = &list["value"][0];
        let words = row["signature"].as_str().unwrap_or_default();
        table.row(format!("{language}: its signature is told"), ensure(words.contains("(text: str"), row));
        let tests = lockhouse.run(&["skills", "test"]);
        table.row(
            format!("{language}: its tests pass"),
            equal(tests.status, Some(0)).map_err(|why| format!("{why} {tests:?}")),
        );
    }
    table.finish();
}

#[test]
fn spellings_of_a_name_refer_to_the_same_skill() {
    let mut table = Table::new("ways to write a name");
    for language in ["python", "typescript"] {
        let lockhouse = lockhouse();
        let saved =
            lockhouse.answer(language, &saving(language, "weeklyReport", &giving(language, "f", "1")));
        table.row(format!("{language}: the folder"), equal(&saved["value"]["name"], &json!("weekly-report")));
        let again =
            lockhouse.answer(language, &saving(language, "weekly_report", &giving(language, "f", "2")));
        table.row(format!("{language}: the next version"), equal(&again["value"]["version"], &json!(2)));
        let same =
            lockhouse.answer(language, &saving(language, "weekly-report", &giving(language, "f", "2")));
        table.row(format!("{language}: the same is no version"), equal(&same["value"]["version"], &json!(2)));
        for name in ["weekly_report", "weeklyReport"] {
            let used = lockhouse.answer(
                language,
                &using(language, name)
                    .replace(&format!("{{ {name} }}"), "{ f }")
                    .replace(&format!("import {name}"), "import f")
                    .replace(&format!("{name}()"), "f()"),
            );
            table.row(format!("{language}: {name}"), ensure(used["value"] == 2, &used));
        }
    }
    table.finish();
}

#[test]
fn a_skill_can_import_others_and_tracebacks_show_its_lines() {
    let mut table = Table::new("skills as modules");
    let python = lockhouse();
    for (name, code) in [
        ("one", "from skills.two import two\ndef one(): return two() + 1"),
        ("two", "state = []\ndef two():\n    state.append(1)\n    return len(state)"),
        ("bad", "import math\n\ndef bad():\n    return math.sqrt(-1)"),
        ("left", "from skills.right import right\ndef left(): return 1"),
        ("right", "from skills.left import left\ndef right(): return 1"),
    ] {
        let saved = python.answer("python", &saving("python", name, code));
        assert_eq!(saved["status"], "ok", "{saved}");
    }
    let answer = python
        .answer("python", "from skills.one import one\nfrom skills.two import two\n[one(), one(), two()]");
    table.row("python: loaded once", equal(&answer["value"], &json!([2, 3, 3])));
    let answer = python.answer("python", "from skills.bad import bad\n\nbad()");
    let trace = answer["error"]["traceback"].as_str().unwrap_or_default();
    table.row(
        "python: its frames",
        ensure(trace.contains("File \"skills/bad\", line 4, in bad\n    return math.sqrt(-1)"), trace),
    );
    table.row("python: the program's line", equal(&answer["error"]["line"], &json!(3)));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    table.row("python: the skill's line", ensure(message.ends_with(", in skills/bad, line 4"), message));
    let answer = python.answer("python", "import skills.left");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    table.row("python: a circle", ensure(message.contains("circular import"), message));

    let typescript = lockhouse();
    for (name, code) in [
        ("one", "import { two } from 'skills/two';\nexport const one = () => two() + 1;"),
        (
            "two",
            "let state = 0;\nexport default function two() { state += 1; return state; }\nexport { two };",
        ),
        (
            "bad",
            "interface Unused {\n  a: 1;\n}\nexport function bad(): number {\n  return (null as any).x;\n}",
        ),
        ("left", "import { right } from 'skills/right';\nexport const left = () => right;"),
        ("right", "import { left } from 'skills/left';\nexport const right = () => left;"),
    ] {
        let saved = typescript.answer("typescript", &saving("typescript", name, code));
        assert_eq!(saved["status"], "ok", "{saved}");
    }
    let program = "import { one } from 'skills/one';\nimport two from 'skills/two';\n[one(), one(), two()]";
    let answer = typescript.answer("typescript", program);
    table.row("typescript: loaded once", ensure(answer["value"] == json!([2, 3, 3]), &answer));
    let answer = typescript.answer("typescript", "import { bad } from 'skills/bad';\n\nbad();");
    let trace = answer["error"]["traceback"].as_str().unwrap_or_default();
    table.row("typescript: its frames", ensure(trace.contains("at bad (skills/bad.ts:5:"), &answer));
    table.row("typescript: the program's line", equal(&answer["error"]["line"], &json!(3)));
    let answer = typescript.answer("typescript", "import 'skills/left';\n1");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    table.row("typescript: a circle", ensure(message.contains("left → right → left"), message));
    let answer = typescript.answer("typescript", "import { nothing } from 'skills/one';\nnothing");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    table.row("typescript: a name that it lacks", ensure(message.contains("it exports: one"), message));
    table.finish();
}

#[test]
fn a_skill_uses_servers_by_their_names_as_a_program_does() {
    let lockhouse = lockhouse();
    let mut table = Table::new("servers in skills");
    for (language, name, code, program) in [
        (
            "python",
            "total",
            "def total(n): return fixture.add(a=1, b=n)['sum']",
            "from skills.total import total\ntotal(2)",
        ),
        (
            "python",
            "later",
            "async def later(n): return (await fixture.add(a=1, b=n))['sum']",
            "from skills.later import later\nfixture.add(a=1, b=1)['sum'] + await later(0)",
        ),
        (
            "python",
            "flat",
            "def flat(): return fixture__add(a=1, b=2)['sum']",
            "import skills\nskills.run('flat')",
        ),
        (
            "typescript",
            "total_ts",
            "export const total = async (n) => (await fixture.add({ a: 1, b: n })).sum;",
            "import { total } from 'skills/total_ts'; await total(2)",
        ),
    ] {
        let saved = lockhouse.answer(language, &saving(language, name, code));
        let answer = lockhouse.answer(language, program);
        let told = |error| format!("{error} {saved} {answer}");
        table.row(format!("{language}: {name}"), equal(&answer["value"], &json!(3)).map_err(told));
    }
    table.finish();
}

#[test]
fn a_missing_skill_or_one_of_the_other_language_is_reported() {
    let mut table = Table::new("skills that cannot be imported");
    let lockhouse = lockhouse();
    for (language, name) in [("python", "snake"), ("typescript", "shell")] {
        let saved = lockhouse.answer(language, &saving(language, name, &giving(language, name, "1")));
        assert_eq!(saved["status"], "ok", "{saved}");
    }
    for (language, name, told) in [
        ("python", "snakes", "did you mean snake?"),
        ("python", "zzz", "there are: shell, snake"),
        ("python", "shell", "written in typescript"),
        ("typescript", "shel", "did you mean shell?"),
        ("typescript", "snake", "written in python"),
    ] {
        let answer = lockhouse.answer(language, &using(language, name));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {name}"), ensure(message.contains(told), &answer));
    }
    let records: Vec<Value> =
        lockhouse.records().into_iter().filter(|record| record["event"] == "skill").collect();
    let loaded: Vec<&Value> = records.iter().map(|record| &record["skill"]).collect();
    table.row("what was found is in the log", equal(loaded, vec![&json!("shell"), &json!("snake")]));
    table.finish();
}
