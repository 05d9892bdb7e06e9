//! Tests of the Python standard library in a sandboxed worker, with every Python version on this machine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

/// Python modules, each with a program that uses the module and whose last expression is true.
const MODULE_USES: &[(&str, &str)] = &[
    ("json", "import json\njson.loads(json.dumps({'a': [1, 2.5, None, 'ž']})) == {'a': [1, 2.5, None, 'ž']}"),
    ("re", "import re\nre.sub(r'(?P<a>\\d+)', lambda m: str(int(m['a']) + 1), 'a1b22') == 'a2b23'"),
    ("math", "import math\nmath.isclose(math.sqrt(2) ** 2, 2) and math.comb(5, 2) == 10"),
    (
        "datetime",
        "import datetime\n(datetime.datetime.strptime('2024-02-28', '%Y-%m-%d') + datetime.timedelta(days=1)).strftime('%d %B %Y') == '29 February 2024'",
    ),
    (
        "collections",
        "import collections\ncollections.Counter('aab').most_common(1) == [('a', 2)] and collections.OrderedDict(a=1) and collections.namedtuple('P', 'x')(1).x == 1",
    ),
    (
        "itertools",
        "import itertools\nlist(itertools.chain(itertools.islice(itertools.count(), 2), itertools.permutations('ab', 1))) == [0, 1, ('a',), ('b',)]",
    ),
    (
        "functools",
        "import functools\n@functools.lru_cache(None)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nfunctools.reduce(lambda a, b: a + b, [f(30), 1]) == 832041",
    ),
    ("statistics", "import statistics\nstatistics.median([3, 1, 2]) == 2 and statistics.pstdev([1, 3]) == 1"),
    (
        "decimal",
        "from decimal import Decimal, getcontext\ngetcontext().prec = 30\nDecimal(1) / Decimal(3) * 3 < 1",
    ),
    ("fractions", "from fractions import Fraction\nFraction('1/3') + Fraction(1, 6) == Fraction(1, 2)"),
    (
        "random",
        "import random\nrandom.seed(1)\na = random.sample(range(99), 3)\nrandom.seed(1)\na == random.sample(range(99), 3) and random.gauss(0, 1) is not None",
    ),
    (
        "string",
        "import string\nstring.Template('$a').substitute(a=1) == '1' and string.ascii_letters[0] == 'a'",
    ),
    (
        "textwrap",
        "import textwrap\ntextwrap.dedent('  a\\n  b') == 'a\\nb' and textwrap.wrap('a b', 1) == ['a', 'b']",
    ),
    (
        "csv",
        "import csv, io\nout = io.StringIO()\ncsv.writer(out).writerow(['a', 'b,c'])\nlist(csv.DictReader(io.StringIO('x,y\\r\\n' + out.getvalue()))) == [{'x': 'a', 'y': 'b,c'}]",
    ),
    (
        "io",
        "import io\nio.BytesIO(b'ab').read(1) == b'a' and io.TextIOWrapper(io.BytesIO('ž'.encode())).read() == 'ž'",
    ),
    ("base64", "import base64\nbase64.b64decode(base64.b64encode(b'x')) == b'x'"),
    (
        "hashlib",
        "import hashlib\nhashlib.sha256(b'').hexdigest()[:8] == 'e3b0c442' and hashlib.new('md5', b'').hexdigest()[:4] == 'd41d' and hashlib.blake2b(b'').digest_size == 64 and hashlib.sha3_256(b'').hexdigest()[:4] == 'a7ff' and len(hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10)) == 32",
    ),
    (
        "hmac",
        "import hmac\nhmac.compare_digest(hmac.new(b'k', b'm', 'sha256').hexdigest(), hmac.digest(b'k', b'm', 'sha256').hex())",
    ),
    (
        "uuid",
        "import uuid\nuuid.uuid4() != uuid.uuid4() and uuid.uuid5(uuid.NAMESPACE_DNS, 'a').version == 5 and uuid.uuid1().version == 1",
    ),
    (
        "urllib.parse",
        "import urllib.parse\nurllib.parse.parse_qs(urllib.parse.urlsplit('http://a/?b=c%20d').query) == {'b': ['c d']}",
    ),
    ("html", "import html, html.parser, html.entities\nhtml.unescape(html.escape('<ž&\"')) == '<ž&\"'"),
    (
        "xml.etree.ElementTree",
        "import xml.etree.ElementTree as ET\nET.tostring(ET.fromstring('<a><b x=\"1\">t</b></a>').find('b')) == b'<b x=\"1\">t</b>'",
    ),
    (
        "zoneinfo",
        "from zoneinfo import ZoneInfo\nimport datetime\nstr(datetime.datetime(2024, 7, 1, tzinfo=ZoneInfo('Europe/Prague')).utcoffset()) == '2:00:00'",
    ),
    (
        "zoneinfo of another zone",
        "from zoneinfo import ZoneInfo\nimport datetime\nstr(datetime.datetime(2024, 7, 1, tzinfo=ZoneInfo('America/New_York')).utcoffset()) == '-1 day, 20:00:00'",
    ),
    (
        "difflib",
        "import difflib\ndifflib.get_close_matches('aple', ['apple', 'pear']) == ['apple'] and len(list(difflib.unified_diff(['a'], ['b'])))  > 0",
    ),
    (
        "heapq",
        "import heapq\nheapq.nsmallest(2, [3, 1, 2]) == [1, 2] and list(heapq.merge([1], [0])) == [0, 1]",
    ),
    ("bisect", "import bisect\nbisect.bisect([1, 3], 2) == 1"),
    (
        "enum",
        "import enum\nclass E(enum.Flag):\n  A = enum.auto()\n  B = enum.auto()\nlen(E) == 2 and E.A | E.B != E.A",
    ),
    (
        "dataclasses",
        "import dataclasses\n@dataclasses.dataclass(order=True, frozen=True)\nclass P:\n  x: int = 1\n  y: list = dataclasses.field(default_factory=list)\ndataclasses.asdict(dataclasses.replace(P(), x=2)) == {'x': 2, 'y': []}",
    ),
    (
        "typing",
        "import typing\nclass T(typing.TypedDict):\n  a: typing.Optional[int]\ntyping.get_type_hints(T)['a'] == typing.Optional[int]",
    ),
    (
        "asyncio",
        "import asyncio\nasync def f(n):\n  await asyncio.sleep(0.001)\n  return n\nqueue = asyncio.Queue()\nawait queue.put(1)\nr = await asyncio.gather(*map(f, range(5)))\nt = await asyncio.to_thread(lambda: 7)\nasync with asyncio.Lock(): pass\ntry:\n  await asyncio.wait_for(asyncio.sleep(9), 0.01)\nexcept asyncio.TimeoutError: late = True\nr == [0, 1, 2, 3, 4] and await queue.get() == 1 and t == 7 and late",
    ),
    (
        "asyncio.run",
        "import asyncio\nasync def f():\n  await asyncio.sleep(0.001)\n  return 3\nasyncio.run(f()) == 3",
    ),
    (
        "concurrent.futures",
        "from concurrent.futures import ThreadPoolExecutor, as_completed\nwith ThreadPoolExecutor(8) as pool:\n  r = sum(f.result() for f in as_completed([pool.submit(pow, i, 2) for i in range(20)]))\nr == 2470",
    ),
    (
        "threading",
        "import threading\nseen = []\nlock = threading.Lock()\ndef f(i):\n  with lock: seen.append(i)\nts = [threading.Thread(target=f, args=(i,)) for i in range(10)]\n[t.start() for t in ts]\n[t.join() for t in ts]\ne = threading.Event()\nthreading.Timer(0.001, e.set).start()\ne.wait(5) and sorted(seen) == list(range(10))",
    ),
    (
        "queue",
        "import queue, threading\nq = queue.Queue()\nthreading.Thread(target=q.put, args=(1,)).start()\nq.get(timeout=5) == 1",
    ),
    (
        "time",
        "import time\nt = time.monotonic()\ntime.sleep(0.01)\ntime.monotonic() - t >= 0.01 and time.strftime('%Y', time.gmtime(0)) == '1970' and time.localtime(0).tm_year in (1969, 1970) and time.process_time() > 0 and time.perf_counter() > 0 and time.thread_time() >= 0",
    ),
    (
        "calendar",
        "import calendar\ncalendar.monthrange(2024, 2) == (3, 29) and 'February' in calendar.month(2024, 2)",
    ),
    ("pprint", "import pprint\npprint.pformat({'b': 1, 'a': 2}) == \"{'a': 2, 'b': 1}\""),
    (
        "copy",
        "import copy\na = [[1]]\nb = copy.deepcopy(a)\nb[0].append(2)\na == [[1]] and copy.copy(a)[0] is a[0]",
    ),
    (
        "operator",
        "import operator\noperator.itemgetter(1)([1, 2]) == 2 and operator.attrgetter('real')(3) == 3",
    ),
    (
        "contextlib",
        "import contextlib, io\n@contextlib.contextmanager\ndef f(): yield 1\nout = io.StringIO()\nwith f() as one, contextlib.suppress(ValueError), contextlib.redirect_stdout(out):\n  print('x')\n  raise ValueError\none == 1 and out.getvalue() == 'x\\n'",
    ),
    (
        "abc",
        "import abc\nclass A(abc.ABC):\n  @abc.abstractmethod\n  def f(self): ...\ntry: A(); r = False\nexcept TypeError: r = True\nr",
    ),
    (
        "types",
        "import types\ntypes.SimpleNamespace(a=1).a == 1 and types.MappingProxyType({'a': 1})['a'] == 1",
    ),
    ("struct", "import struct\nstruct.unpack('<Hd', struct.pack('<Hd', 1, 2.5)) == (1, 2.5)"),
    (
        "zlib",
        "import zlib\nzlib.decompress(zlib.compress(b'x' * 1000)) == b'x' * 1000 and zlib.crc32(b'a') == 3904355907",
    ),
    (
        "gzip",
        "import gzip, io\ngzip.decompress(gzip.compress(b'x')) == b'x' and gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b'y'))).read() == b'y'",
    ),
    ("secrets", "import secrets\nlen(secrets.token_bytes(16)) == 16 and secrets.choice('a') == 'a'"),
    (
        "logging",
        "import logging, io\nout = io.StringIO()\nlogging.basicConfig(stream=out)\nlogging.warning('x')\nout.getvalue() == 'WARNING:root:x\\n'",
    ),
    ("pickle", "import pickle\npickle.loads(pickle.dumps({'a': (1, 2)})) == {'a': (1, 2)}"),
    (
        "traceback",
        "import traceback\ntry: 1/0\nexcept ZeroDivisionError: t = traceback.format_exc()\n'ZeroDivisionError' in t and '<code>' in t",
    ),
    ("inspect", "import inspect\ndef f(a, b=1): pass\nstr(inspect.signature(f)) == '(a, b=1)'"),
    ("unicodedata", "import unicodedata\nunicodedata.normalize('NFD', 'ž') == 'z\\u030c'"),
    (
        "zipfile",
        "import zipfile, io\nb = io.BytesIO()\nwith zipfile.ZipFile(b, 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('a', 'x')\nzipfile.ZipFile(b).read('a') == b'x'",
    ),
    ("ipaddress", "import ipaddress\nipaddress.ip_address('10.0.0.1') in ipaddress.ip_network('10.0.0.0/8')"),
    (
        "encodings",
        "'ž'.encode('cp1250').decode('cp1250') == 'ž' and 'ž'.encode('utf-16').decode('utf-16') == 'ž' and 'é'.encode('latin-1') == b'\\xe9' and 'ž.cz'.encode('idna').decode('idna') == 'ž.cz'",
    ),
];

#[tokio::test]
async fn the_standard_library_works_in_a_sealed_worker_of_every_python() {
    let mut table = Table::new("the standard library, by interpreter");
    for python in pythons() {
        let config = format!("[python]\ninterpreter = \"{}\"\n", python.display());
        let lockhouse = Lockhouse::new().config(&config);
        let session = lockhouse.serve().await;
        for (module, code) in MODULE_USES {
            let row = format!("{}: {module}", python.display());
            let answer = session.run_code("python", code).await;
            if answer["value"] != true && !works_outside(&python, code) {
                println!("left out, since it does not work outside either: {row}");
                continue;
            }
            table.row(row, ensure(answer["value"] == true, &answer["error"]));
        }
    }
    table.finish();
}

/// Control: returns whether the program works in this interpreter outside the sandbox. It does not if the interpreter
/// was built without the module.
fn works_outside(python: &PathBuf, code: &str) -> bool {
    let runner = "import ast, asyncio, inspect, sys, types\n\
        code = compile(sys.argv[1], '<code>', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)\n\
        result = eval(code, {'__name__': '__main__'})\n\
        asyncio.run(result) if inspect.iscoroutine(result) else None";
    CommandOutput::run(Command::new(python).args(["-c", runner, code]), b"").status == Some(0)
}

/// Returns the real paths of the Python interpreters from version 3.10 on that are in `/usr/bin`, in `PATH` or in
/// `~/.pyenv/versions`.
fn pythons() -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|directory| directory.join("python3"));
    let versions = PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".pyenv/versions");
    let in_pyenv = std::fs::read_dir(versions).into_iter().flatten();
    let in_pyenv = in_pyenv.map(|entry| entry.expect("an entry").path().join("bin/python3"));
    let candidates = [PathBuf::from("/usr/bin/python3")].into_iter().chain(in_path).chain(in_pyenv);
    let asks =
        "import os, sys; print(os.path.realpath(sys.executable) if sys.version_info >= (3, 10) else '')";
    let found = candidates.filter(|path| path.is_file()).map(|path| {
        let finished = CommandOutput::run(Command::new(path).args(["-I", "-c", asks]), b"");
        PathBuf::from(finished.stdout.trim())
    });
    found.filter(|path| path.is_file()).collect()
}
