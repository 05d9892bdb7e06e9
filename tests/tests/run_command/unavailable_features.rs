//! Tests of features that are missing in the sandbox, such as files and the network: the error says that the feature is
//! unavailable, why, and what to use instead. Other programs show that similar features are available.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

/// The text that every error about an unavailable feature contains.
const UNAVAILABLE: &str = "not available in the Lockhouse sandbox";
/// Words that begin the advice in an error about an unavailable feature.
const ADVICE_WORDS: [&str; 4] = ["use ", "put ", "keep ", "ask "];

const FILES: &str = "files of the host cannot be opened";
const PROCESSES: &str = "processes cannot be started";
const NETWORK: &str = "there is no network";
const SYSTEM: &str = "the operating system is out of reach";
const ENVIRONMENT: &str = "there are no environment variables";

/// Python programs that end in an error, each with a reason. The first line of the error contains `UNAVAILABLE` and
/// that reason.
const PYTHON_ERRORS: &[(&str, &str)] = &[
    ("open('/srv/a')", FILES),
    ("open('/srv/a', 'w')", FILES),
    ("open(b'/srv/a', 'rb')", FILES),
    ("import io\nio.FileIO('/srv/a')", FILES),
    ("import os\nos.open('/srv/a', os.O_RDONLY)", FILES),
    ("import codecs\ncodecs.open('/srv/a')", FILES),
    ("import gzip\ngzip.open('/srv/a')", FILES),
    ("import zipfile\nzipfile.ZipFile('/srv/a')", FILES),
    ("import json\njson.load(open('/srv/a'))", FILES),
    ("import logging\nlogging.FileHandler('/srv/a')", FILES),
    ("import shutil\nshutil.copy('/srv/a', 'b')", FILES),
    ("import shutil\nshutil.rmtree('/srv/a')", FILES),
    ("import os\nos.listdir('/srv')", FILES),
    ("import os\nos.stat('/srv/a')", FILES),
    ("import os\nos.path.getsize('/srv/a')", FILES),
    ("import os\nos.makedirs('/srv/a/b', exist_ok=True)", FILES),
    ("from pathlib import Path\nPath('/srv/a').write_text('x')", FILES),
    ("from pathlib import Path\nPath('/srv/a').read_text()", FILES),
    ("from pathlib import Path\nlist(Path('/srv').iterdir())", FILES),
    ("from pathlib import Path\nPath('/srv/a').mkdir(parents=True)", FILES),
    ("from pathlib import Path\nPath.home()", ENVIRONMENT),
    ("import sqlite3\nsqlite3.connect('/srv/a.db')", FILES),
    ("__file__", FILES),
    ("import tempfile\ntempfile.TemporaryFile(dir='/srv')", FILES),
    ("import os\nos.environ['API_KEY']", ENVIRONMENT),
    ("import os\nos.system('ls')", PROCESSES),
    ("import os\nos.popen('ls')", PROCESSES),
    ("import os\nos.fork()", PROCESSES),
    ("import subprocess\nsubprocess.run(['ls'])", PROCESSES),
    ("import asyncio\nawait asyncio.create_subprocess_exec('ls')", PROCESSES),
    ("import multiprocessing", "ThreadPoolExecutor"),
    ("from concurrent.futures import ProcessPoolExecutor", "ThreadPoolExecutor"),
    ("import socket\nsocket.socket()", NETWORK),
    ("import socket\nsocket.gethostbyname('a')", NETWORK),
    ("import socket\nsocket.gethostname()", SYSTEM),
    ("import asyncio\nawait asyncio.open_connection('a', 80)", NETWORK),
    ("import asyncio\nawait asyncio.start_server(print, '127.0.0.1', 80)", NETWORK),
    ("import requests", NETWORK),
    ("import httpx", NETWORK),
    ("import ssl", NETWORK),
    ("import http.client", NETWORK),
    ("from urllib.request import urlopen", NETWORK),
    ("import urllib\nurllib.request.urlopen('http://a')", NETWORK),
    ("import webbrowser", NETWORK),
    ("import pip", "lockhouse python add NAME"),
    ("!pip install requests", "lockhouse python add NAME"),
    ("pip install requests", "lockhouse python add NAME"),
    ("import numpy_of_nobody", "lockhouse python add numpy_of_nobody"),
    ("import logging.handlers", "'logging.handlers' under [python] preload"),
    ("input('Name: ')", "there is no input"),
    ("import getpass", "there is no terminal"),
    ("breakpoint()", "there is no debugger"),
    ("import signal\nsignal.alarm(1)", "asyncio.wait_for"),
    ("import time\ntime.tzset()", "zoneinfo.ZoneInfo"),
    ("import locale\nlocale.setlocale(locale.LC_ALL, 'xx_XX.UTF-8')", "f-strings"),
    ("import resource", SYSTEM),
    ("import os\nos.kill(1, 9)", SYSTEM),
    ("import os\nos.uname()", SYSTEM),
    ("import pwd\npwd.getpwuid(0)", SYSTEM),
    ("'x'.encode('cp037')", "utf-8"),
    (
        "import threading, time\nfor _ in range(400): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()",
        "ThreadPoolExecutor(32)",
    ),
];

/// Python programs that end in an error even if an administrator has preloaded the modules that they use. Each has a
/// text in the first line of the error.
const PRELOADED_ERRORS: &[(&str, &str)] = &[
    ("import ctypes\nctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)", "use Python alone"),
    ("import multiprocessing\nmultiprocessing.Semaphore()", "ThreadPoolExecutor"),
    ("import urllib.request\nurllib.request.urlopen('http://a')", NETWORK),
    ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))", "[limits]"),
    ("import getpass\ngetpass.getpass()", "there is no terminal"),
    ("import webbrowser\nwebbrowser.open('http://a')", NETWORK),
];

/// Python programs that succeed with an empty value, such as `false`. Each has its value, and a text in the message on
/// standard error that explains why the value is empty.
const PYTHON_EMPTY_VALUES: &[(&str, &str, &str)] = &[
    ("import os\nos.path.exists('/etc/passwd')", "false", "os.path.exists is False"),
    ("import os\nos.path.islink('/srv/a')", "false", "os.path.islink is False"),
    ("import os\nos.access('/srv/a', os.R_OK)", "false", "os.access is False"),
    ("import shutil\nshutil.which('ls')", "null", "shutil.which is None"),
    ("import zipfile\nzipfile.is_zipfile('/srv/a')", "false", "zipfile.is_zipfile was refused"),
    (
        "import configparser\nconfigparser.ConfigParser().read('/srv/a.ini')",
        "[]",
        "configparser.read was refused",
    ),
    ("import shutil\nshutil.rmtree('/srv/a', ignore_errors=True)", "null", "shutil.rmtree was refused"),
    ("import glob\nglob.glob('/srv/*')", "[]", "glob.glob was refused"),
    ("import os\nlist(os.walk('/srv'))", "[]", "walk was refused"),
    ("import os\nos.environ.get('API_KEY')", "null", "os.environ is empty"),
    ("import os\nos.getenv('API_KEY')", "null", "os.environ is empty"),
    ("import sys\nsys.stdin.read()", "\"\"", "sys.stdin is empty"),
];

/// Python programs that succeed with this value and write no message to standard error.
const PYTHON_WORKS: &[(&str, &str)] = &[
    ("import sqlite3\nsqlite3.connect(':memory:').execute('select 1 + 1').fetchall()", "[[2]]"),
    ("import csv, io\nlist(csv.reader(io.StringIO('a,b\\n1,2')))", r#"[["a","b"],["1","2"]]"#),
    ("import gzip\ngzip.decompress(gzip.compress(b'x')).decode()", "\"x\""),
    ("import os\nos.getcwd()", "\"/home/run\""),
    ("import os\nos.getenv('LEVEL', 'low')", "\"low\""),
    ("from pathlib import Path\nstr(Path.cwd() / 'a')", "\"/home/run/a\""),
    ("from pathlib import Path\nstr(Path('a').resolve())", "\"/home/run/a\""),
    ("import time\ntime.sleep(0.001)\n1", "1"),
    (
        "import threading\nr = []\nt = threading.Thread(target=r.append, args=(1,))\nt.start()\nt.join()\nr",
        "[1]",
    ),
    ("from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(2).map(abs, [-1]))", "[1]"),
    ("import asyncio\nawait asyncio.to_thread(abs, -1)", "1"),
    ("import socket\na, b = socket.socketpair()\na.send(b'x')\nb.recv(1).decode()", "\"x\""),
    ("import os\nos.cpu_count() > 0", "true"),
    ("import platform\n[platform.system(), platform.node()]", r#"["Linux","lockhouse"]"#),
    ("import locale\nlocale.setlocale(locale.LC_ALL, 'C')", "\"C\""),
    (
        "from zoneinfo import ZoneInfo\nfrom datetime import datetime\ndatetime(2024, 7, 1, tzinfo=ZoneInfo('Europe/Prague'))",
        "\"2024-07-01T00:00:00+02:00\"",
    ),
    ("from datetime import datetime\ndatetime.now().astimezone().tzinfo is not None", "true"),
    ("import random\n0 <= random.SystemRandom().random() < 1", "true"),
    ("import uuid\nlen(str(uuid.uuid1()))", "36"),
    ("import mimetypes\nmimetypes.guess_type('a.png')[0]", "\"image/png\""),
    ("from http import HTTPStatus\nHTTPStatus(404).phrase", "\"Not Found\""),
    ("from decimal import Decimal\nDecimal('1.1') + Decimal('2.2')", "\"3.3\""),
    ("import importlib.util\nimportlib.util.find_spec('requests')", "null"),
];

const TYPESCRIPT_ERRORS: &[(&str, &str)] = &[
    ("await fetch('https://example.com')", NETWORK),
    ("new XMLHttpRequest()", NETWORK),
    ("new WebSocket('ws://a')", NETWORK),
    ("new Request('a')", NETWORK),
    ("new AbortController()", "Promise.race"),
    ("axios.get('a')", NETWORK),
    ("import axios from 'axios'", "there are no packages"),
    ("import net from 'net'", "there are no packages"),
    ("import fs from 'fs'\nfs.readFileSync('/srv/a')", FILES),
    ("import x from './x.ts'", "there are no packages"),
    ("require('net')", "there are no packages"),
    ("await import('lodash')", "the methods of arrays"),
    ("await eval(\"import('lodash')\")", "there are no packages"),
    ("import { setTimeout } from 'node:timers'", "the global setTimeout"),
    ("import { setTimeout } from 'timers/promises'", "the global setTimeout"),
    ("process.env.API_KEY", ENVIRONMENT),
    ("process.exit(0)", "end with return"),
    ("Deno.readTextFile('a')", "there are no files"),
    ("Bun.file('a')", "there are no files"),
    ("fs.readFileSync('a')", "node:fs"),
    ("__dirname", "there are no files"),
    ("import.meta.url", "a program has no file"),
    ("module.exports = 1", "the last expression"),
    ("global.x = 1", "globalThis"),
    ("new Blob(['a'])", "Uint8Array"),
    ("new Worker('a.js')", "Promise.all"),
    ("window.location", "there is no browser"),
    ("document.title", "there is no browser"),
    ("navigator.userAgent", "there is no browser"),
    ("localStorage.getItem('a')", "keep data in variables"),
    ("alert('a')", "console.log"),
    ("prompt('a')", "console.log"),
    ("new WebAssembly.Module(new Uint8Array())", "JavaScript"),
    ("await crypto.subtle.sign('HMAC', null, new Uint8Array())", "hashlib"),
];

const TYPESCRIPT_WORKS: &[(&str, &str)] = &[
    ("typeof process", "\"undefined\""),
    ("typeof process !== 'undefined' ? process.env.A : 'none'", "\"none\""),
    ("fetch('https://a').then(() => 1).catch(() => 2)", "2"),
    ("structuredClone(new Map([[1, 2]])).get(1)", "2"),
    (
        "const it = structuredClone(JSON.parse('{\"__proto__\": {\"b\": 1}}')); [it.b ?? 0, Object.keys(it)]",
        "[0,[\"__proto__\"]]",
    ),
    ("callTool('a', 'b', { c: () => 1 }).then(() => 1, () => 2)", "2"),
    ("crypto.randomUUID().length", "36"),
    ("crypto.getRandomValues(new Uint8Array(4)).length", "4"),
    ("new TextDecoder().decode(new TextEncoder().encode('é'))", "\"é\""),
    ("new URLSearchParams('a=1').get('a')", "\"1\""),
    ("atob(btoa('a'))", "\"a\""),
    ("performance.now() > 0", "true"),
    ("await new Promise(done => setTimeout(() => done(1), 1))", "1"),
    ("await new Promise(done => setImmediate(() => done(1)))", "1"),
    (
        "let n = 0; await new Promise<void>(done => { const t = setInterval(() => { if (++n > 2) { clearInterval(t); done() } }, 1) }); n",
        "3",
    ),
    ("export default 42", "42"),
    ("(1234.5).toLocaleString()", "\"1,234.5\""),
    ("'a'.localeCompare('b')", "-1"),
    ("new Date(0).toLocaleDateString()", "\"1/1/1970\""),
];

#[tokio::test]
async fn unavailable_features_say_why_and_what_to_use_instead() {
    let plain = Lockhouse::new();
    let loaded = Lockhouse::new().config(
        "[python]\npreload = [\"ctypes\", \"multiprocessing.synchronize\", \"urllib.request\", \"resource\", \
         \"getpass\", \"webbrowser\"]\n",
    );
    let mut table = Table::new("refusals");
    let (plain, loaded) = (plain.serve().await, loaded.serve().await);
    for (session, language, rows) in [
        (&plain, "python", PYTHON_ERRORS),
        (&loaded, "python", PRELOADED_ERRORS),
        (&plain, "typescript", TYPESCRIPT_ERRORS),
    ] {
        for (code, words) in rows {
            let answer = session.run_code(language, code).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let first = message.lines().next().unwrap_or_default();
            let told = first.contains(UNAVAILABLE)
                && first.contains(words)
                && ADVICE_WORDS.iter().any(|way| first.contains(way));
            table.row(format!("{language}: {code}"), ensure(answer["status"] == "error" && told, &answer));
        }
    }
    table.finish();
}

#[tokio::test]
async fn an_empty_value_is_explained_once_on_stderr() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("messages on stderr");
    for (code, value, words) in PYTHON_EMPTY_VALUES {
        let (before, last) = code.rsplit_once('\n').unwrap_or(("", code));
        let answer = session.run_code("python", &format!("{before}\n{last};\n{last}")).await;
        let stderr = answer["stderr"].as_str().unwrap_or_default();
        let told = stderr.contains(words) && stderr.matches(UNAVAILABLE).count() == 1;
        let right = answer["status"] == "ok" && answer["value"] == parsed(value);
        table.row(*code, ensure(right && told, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn available_features_work_without_a_message() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("available features");
    for (language, rows) in [("python", PYTHON_WORKS), ("typescript", TYPESCRIPT_WORKS)] {
        for (code, value) in rows {
            let answer = session.run_code(language, code).await;
            let told = answer.get("stderr");
            let right = answer["status"] == "ok" && answer["value"] == parsed(value);
            table.row(format!("{language}: {code}"), ensure(right && told.is_none(), &answer));
        }
    }
    table.finish();
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

#[test]
fn memory_exhaustion_and_deep_recursion_are_reported_as_such() {
    let lockhouse = Lockhouse::new().config("[limits]\nmemory_mib = 64\n");
    let limit = "memory limit of 64 MiB";
    let rows = [
        (
            "python",
            "tasks",
            "import asyncio\nasync def f(): await asyncio.sleep(9)\nkept = []\nwhile True:\n  kept.append(asyncio.ensure_future(f()))\n  await asyncio.sleep(0)",
            "limit",
            limit,
        ),
        (
            "python",
            "a gather",
            "import asyncio\nkept = []\nasync def f():\n  while True:\n    kept.append([0] * 1000)\n    await asyncio.sleep(0)\nawait asyncio.gather(*[f() for _ in range(10)])",
            "limit",
            limit,
        ),
        (
            "python",
            "output without room",
            "kept = []\nwhile True:\n  try:\n    while True: kept.append([0] * 100)\n  except MemoryError: print('full')",
            "limit",
            limit,
        ),
        (
            "python",
            "a request without room",
            "from mcp_tools import search_tools\nkept = []\nwhile True:\n  try:\n    while True: kept.append([0] * 100)\n  except MemoryError: search_tools('a')",
            "limit",
            limit,
        ),
        ("python", "recursion", "f = lambda: f()\nf()", "error", "maximum recursion depth"),
        (
            "python",
            "recursion by turns",
            "f = lambda: g()\ng = lambda: f()\nf()",
            "error",
            "maximum recursion depth",
        ),
        (
            "typescript",
            "promises",
            "const kept = []; for (;;) kept.push(new Promise(() => {}))",
            "limit",
            limit,
        ),
        (
            "typescript",
            "rejections",
            "const kept = []; for (;;) kept.push(Promise.reject(new Error('a')))",
            "limit",
            limit,
        ),
        (
            "typescript",
            "what is gone when it is told",
            "const f = () => { const kept = []; for (;;) kept.push({}) }; f()",
            "limit",
            limit,
        ),
        ("typescript", "recursion", "const f = (): any => f(); f()", "error", "call stack"),
    ];
    let mut table = Table::new("memory and depth");
    for (language, name, code, status, words) in rows {
        let answer = lockhouse.answer(language, code);
        let error = &answer["error"];
        let told = error["message"].as_str().is_some_and(|message| message.contains(words));
        let helped = error["hint"].as_str().is_some_and(|hint| !hint.is_empty());
        table.row(format!("{language}: {name}"), ensure(answer["status"] == status && told && helped, error));
    }
    let caught = "kept = []\ntry:\n  while True: kept.append([0] * 100)\nexcept MemoryError:\n  kept.clear()\n'caught'";
    table.row("python: caught", equal(&lockhouse.answer("python", caught)["value"], &json!("caught")));
    let caught =
        "let kept = []; try { for (;;) kept.push(new Array(1000).fill(0)) } catch { kept = [] } 'caught'";
    table
        .row("typescript: caught", equal(&lockhouse.answer("typescript", caught)["value"], &json!("caught")));
    table.finish();
}
