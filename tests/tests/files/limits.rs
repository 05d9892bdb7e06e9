//! The limits of the file system in memory: errors that programs can catch, and room again after a removal.

use lockhouse_tests::{Lockhouse, Table, ensure};
use serde_json::json;

/// Files may have half of it: 32 MiB.
const CONFIG: &str = "[limits]\nmemory_mib = 64\n";

const PYTHON: [(&str, &str); 7] = [
    ("a file fits", "open('a', 'wb').write(bytes(20 << 20))\nimport os\nos.path.getsize('a') == 20 << 20"),
    (
        "the space is limited",
        "data = bytes(1 << 20)\ncount = 0\ntry:\n    for number in range(99):\n        with open(f'f{number}', 'wb') as file: file.write(data)\n        count += 1\nexcept OSError as error: found = [type(error).__name__, error.errno]\nfound == ['OSError', 28] and count == 32",
    ),
    (
        "a removal makes room",
        "import os\nfor _ in range(5):\n    with open('a', 'wb') as file: file.write(bytes(20 << 20))\n    os.remove('a')\nfor _ in range(5):\n    with open('a', 'wb') as file: file.write(bytes(20 << 20))\nopen('a', 'rb').seek(0, 2) == 20 << 20",
    ),
    (
        "a removed file that is open takes room until it is closed",
        "import os\nfile = open('a', 'wb', 0)\nfile.write(bytes(20 << 20))\nos.remove('a')\ntry: open('b', 'wb', 0).write(bytes(20 << 20))\nexcept OSError as error: found = error.errno\nfile.close()\nfound == 28 and open('b', 'wb', 0).write(bytes(20 << 20)) == 20 << 20",
    ),
    (
        "a gap takes room",
        "found = []\nfor position in (1 << 40, 1 << 62):\n    with open('a', 'wb', 0) as file:\n        file.seek(position)\n        try: file.write(b'x')\n        except OSError as error: found.append(error.errno)\nfound == [28, 28]",
    ),
    (
        "the number of files is limited",
        "count = 0\ntry:\n    for number in range(20_000):\n        open(f'/tmp/{number}', 'w').close()\n        count += 1\nexcept OSError as error: found = error.errno\nfound == 28 and count == 10_000",
    ),
    (
        "names, paths and levels are limited",
        "import os\nfound = []\nfor path in ('x' * 256, 'ž' * 128, '/'.join(['x' * 200] * 21), '/'.join('d' * 65)):\n    try: os.makedirs(path)\n    except OSError as error: found.append(error.errno)\nfound == [36] * 4 and os.mkdir('ž' * 127) is None",
    ),
];

const TYPESCRIPT: [(&str, &str); 4] = [
    (
        "the space is limited",
        "let count = 0, code; try { for (; count < 99; count++) fs.writeFileSync(`f${count}`, new Uint8Array(1 << 20)); } catch (error) { code = [error.code, error.errno]; }\nJSON.stringify([count, code]) === '[32,[\"ENOSPC\",-28]]'",
    ),
    (
        "a removal makes room",
        "for (let round = 0; round < 5; round++) { fs.writeFileSync('a', new Uint8Array(20 << 20)); fs.rmSync('a'); }\nfs.writeFileSync('a', new Uint8Array(20 << 20)); fs.writeFileSync('a', new Uint8Array(20 << 20));\nfs.statSync('a').size === 20 << 20",
    ),
    (
        "the number of files is limited",
        "let count = 0, code; try { for (; count < 20000; count++) fs.writeFileSync(`/tmp/${count}`, ''); } catch (error) { code = error.code; }\ncount === 10000 && code === 'ENOSPC'",
    ),
    (
        "names, paths and levels are limited",
        "const codes = ['x'.repeat(256), 'ž'.repeat(128), 'a/'.repeat(2100), 'd/'.repeat(65)].map((path) => { try { fs.mkdirSync(path, { recursive: true }); } catch (error) { return error.code; } });\ncodes.every((code) => code === 'ENAMETOOLONG') && fs.mkdirSync('ž'.repeat(127)) === undefined",
    ),
];

#[tokio::test]
async fn files_have_limits() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("limits of files");
    for (name, code) in PYTHON {
        let answer = session.run_code("python", code).await;
        table.row(format!("python: {name}"), ensure(answer["value"] == json!(true), &answer));
    }
    for (name, code) in TYPESCRIPT {
        let code = format!("import fs from 'node:fs';\n{code}");
        let answer = session.run_code("typescript", &code).await;
        table.row(format!("typescript: {name}"), ensure(answer["value"] == json!(true), &answer));
    }
    table.finish();
}
