//! Tests of saving skills, and of the errors for code that cannot be saved.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use crate::skills::lockhouse;

#[test]
fn unsavable_code_is_refused_with_a_reason() {
    let mut table = Table::new("skills that cannot be saved");
    let lockhouse = lockhouse();
    let long = "import skills\nskills.save('long', 'd', code='x = 1\\n' * 50_000)";
    for (language, program, told) in [
        (
            "python",
            "import skills\nrows = skills.list()\ndef f(): return rows\nskills.save(f, 'd')",
            "line 3 uses rows, and what line 2 sets it to is made by a call",
        ),
        (
            "python",
            "import skills\nn = 1\nn = 2\ndef f(): return n\nskills.save(f, 'd')",
            "set on several lines (2, 3)",
        ),
        (
            "python",
            "import skills\nfor n in [1]: pass\ndef f(): return n\nskills.save(f, 'd')",
            "known only when the program runs",
        ),
        (
            "python",
            "import skills\ndef f(): return zzz\nskills.save(f, 'd')",
            "uses zzz, which this program does not define",
        ),
        ("python", "import skills\nskills.save(lambda: 1, 'd')", "is not defined by a def or class"),
        ("python", "import skills\nskills.save('f', 'd')", "there is no function f in this program"),
        ("python", "import skills\nskills.save('f', 'd', code='def f(:')", "invalid syntax"),
        ("python", "import skills\nskills.save('f', code='x = 1')", "needs the argument description"),
        ("python", "import skills\nskills.save('f', ' ', code='x = 1')", "the description is empty"),
        ("python", "import skills\nskills.save('f', 'd\\u202e', code='x = 1')", "hidden character"),
        ("python", "import skills\nskills.save('f', 'd' * 2_000, code='x = 1')", "the limit is 1024"),
        ("python", "import skills\nskills.save('f', 'd', ['a,b'], code='x = 1')", "is no tag"),
        (
            "python",
            "import skills\nskills.save('f', 'd', [str(n) for n in range(99)], code='x = 1')",
            "the limit is 16",
        ),
        ("python", "import skills\nskills.save('../f', 'd', code='x = 1')", "is no name for a skill"),
        (
            "python",
            "import skills\nskills.save('save', 'd', code='x = 1')",
            "the module skills has that name itself",
        ),
        ("python", long, "the limit is 262144"),
        ("python", "from mcp_tools import call_tool\ncall_tool('skills', 'sav', {})", "did you mean save?"),
        (
            "typescript",
            "const rows = await skills.list();\nfunction f() { return rows; }\nawait skills.save(f, 'd')",
            "line 2 uses what line 1 sets, and that is made by a call",
        ),
        (
            "typescript",
            "let n = 1;\nfunction f() { return n; }\nawait skills.save(f, 'd')",
            "that is not a const",
        ),
        (
            "typescript",
            "function f() { return zzz; }\nawait skills.save(f, 'd')",
            "f uses zzz, which this program does not define",
        ),
        ("typescript", "await skills.save('f', 'd')", "f is not defined by a function"),
        (
            "typescript",
            "await skills.save({ name: 'f', description: 'd', code: 'export function f( {' })",
            "the code, line 1",
        ),
        (
            "typescript",
            "await skills.save({ name: 'f', description: 'd', code: 'await 1' })",
            "cannot await outside of a function",
        ),
        (
            "typescript",
            "await skills.save({ name: 'f', code: 'export const f = 1' })",
            "needs the argument description",
        ),
        (
            "typescript",
            "await skills.save({ name: 'a--b', description: 'd', code: 'export const f = 1' })",
            "is no name for a skill",
        ),
    ] {
        let answer = lockhouse.answer(language, program);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let last = program.lines().last().unwrap_or_default();
        table.row(format!("{language}: {last}"), ensure(message.contains(told), &answer["error"]));
    }
    let listed = lockhouse.run(&["skills", "list", "--json"]).json();
    table.row("nothing was saved", equal(listed, json!([])));
    table.finish();
}

#[test]
fn the_folder_is_an_agent_skill() {
    let lockhouse = lockhouse();
    let program = "import skills\nskills.save('weekly_report', 'Tells: \"all\" # of it.', ['a', 'b c'], code='def weekly_report():\\n    return 1', tests='assert True')";
    assert_eq!(lockhouse.answer("python", program)["status"], "ok");
    let read = |file: &str| {
        std::fs::read_to_string(lockhouse.path("state/lockhouse/skills/weekly-report").join(file)).unwrap()
    };
    assert_eq!(
        read("SKILL.md"),
        "---\nname: weekly-report\ndescription: \"Tells: \\\"all\\\" # of it.\"\nmetadata:\n  version: \"1\"\n  language: python\n  \
         tags: \"a, b c\"\n---\n\n# weekly-report\n\nTells: \"all\" # of it.\n\nThe code is in `skill.py`. In code that Lockhouse \
         runs:\n\n```python\nfrom skills.weekly_report import weekly_report\n```\n"
    );
    assert_eq!(
        (read("skill.py").as_str(), read("tests.py").as_str()),
        ("def weekly_report():\n    return 1\n", "assert True\n")
    );
}

/// Name, description, source and tags, in this order. Source that is a program of TypeScript becomes a function.
#[test]
fn four_arguments_are_name_description_source_and_tags() {
    let lockhouse = lockhouse();
    let mut table = Table::new("skills.save with four arguments");
    let program = "const rows = [1, 2];\nreturn rows.length + await Promise.resolve(1);";
    for (language, saving, using, expected) in [
        (
            "python",
            "skills.save('two-rows', 'd', 'def two_rows():\\n    return 2', ['a', 'b'])".to_owned(),
            "from skills.two_rows import two_rows\n[two_rows(), skills.search('two rows')[0]['tags']]",
            json!([2, ["a", "b"]]),
        ),
        (
            "typescript",
            "await skills.save('one-row', 'd', 'export const oneRow = () => 1', ['c'])".to_owned(),
            "import { oneRow } from 'skills/one_row'; [oneRow(), (await skills.search('one row'))[0].tags]",
            json!([1, ["c"]]),
        ),
        (
            "typescript",
            format!("await skills.save('three-rows', 'd', {}, [])", json!(program)),
            "import { three_rows } from 'skills/three-rows'; [await three_rows(), await skills.run('three-rows')]",
            json!([3, 3]),
        ),
    ] {
        let saved = lockhouse.answer(language, &saving);
        table.row(format!("{language}: {saving}"), ensure(saved["value"]["state"] == "saved", &saved));
        table.row(
            format!("{language}: {using}"),
            equal(lockhouse.answer(language, using)["value"].clone(), expected),
        );
    }
    for (language, code, words) in [
        ("python", "skills.save('f', 'd', 'x = 1', 'a')", "takes name, description and code as text"),
        ("python", "skills.save('f', 'd', ['a'], ['b'])", "takes name, description and code as text"),
        (
            "python",
            "skills.save('f', 'd', 'x = 1', ['a'], ['b'])",
            "takes name, description and code as text",
        ),
        ("python", "skills.save('f', 'd', 'x = 1', tags=['a'])", "got tags twice"),
        ("python", "skills.save('f', 'd', 'x = (', ['a'])", "'(' was never closed"),
        (
            "typescript",
            "await skills.save('f', 'd', ['a'], ['b'])",
            "takes name, description and code as text",
        ),
        ("typescript", "await skills.save('f', 'd', 'export const f = 1', 'a')", "and an array of tags"),
        ("typescript", "await skills.save('f', 'd', 'return (', [])", "the code, line 1"),
    ] {
        let answer = lockhouse.answer(language, code);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {code}"), ensure(message.contains(words), &answer["error"]));
    }
    table.finish();
}
