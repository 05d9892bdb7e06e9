# `make demo` shows what Lockhouse does, `make test` proves it. Both build what they need and say what is missing.

CARGO ?= cargo
PREFIX ?= /usr/local

.PHONY: build demo load load-attacks test test-quick test-load-subset test-traces test-upstreams test-upstreams-subset test-stubs test-bfcl test-bfcl-subset test-conformance test-kernels test-full endurance bench bench-audit bench-policy bench-seal bench-search bench-shapes bench-tokens fuzz memory-checks lint install package test-package package-mcpb container tools tools-for-tests clean test-inspector

build: tools
	$(CARGO) build --release --locked -p lockhouse -p lockhouse-worker -p lockhouse-python

demo: build
	target/release/lockhouse demo

# Everything: unit, property, snapshot and black-box tests, traces, then real upstream servers and tasks from outside in both languages.
test: tools-for-tests test-quick test-traces test-upstreams-subset test-stubs test-bfcl-subset

test-quick: tools
	tests/libraries/prepare.sh
	$(CARGO) build --locked --workspace
	packaging/run-tests

# 32 of them: 1.5 GB are installed, once. The subset has 9, of 320 MB.
test-upstreams: tools
	$(CARGO) build --locked --workspace
	tests/upstreams/prepare.sh
	tests/upstreams/run.sh

test-upstreams-subset: tools
	$(CARGO) build --locked --workspace
	tests/upstreams/prepare.sh --subset
	tests/upstreams/run.sh --subset

# What `lockhouse stubs` writes, through mypy and tsc, both strict: of the servers that test-upstreams-subset installs, or of the
# catalogues (answers to tools/list) in the folder LOCKHOUSE_CATALOGUES.
test-stubs: tools
	$(CARGO) build --locked --workspace
	$(if $(LOCKHOUSE_CATALOGUES),,tests/upstreams/prepare.sh --subset)
	tests/stubs/prepare.sh
	tests/stubs/run.sh

# The 800 multi-turn tasks of the Berkeley Function Calling Leaderboard without a model, then 200 of them with a run of a
# session for each turn: two minutes. The subset has 12.
test-bfcl: tools
	$(CARGO) build --locked --workspace
	tests/bfcl/prepare.sh
	tests/bfcl/run.sh
	tests/bfcl/run.sh --sessions base

test-bfcl-subset: tools
	$(CARGO) build --locked --workspace
	tests/bfcl/prepare.sh
	tests/bfcl/run.sh --subset
	tests/bfcl/run.sh --subset --sessions

# Traces of OpenTelemetry, of a program that is built to send them: its library of HTTP is built once more for that.
test-traces: tools
	$(CARGO) build --locked -p lockhouse -p lockhouse-worker -p lockhouse-python -p lockhouse-tests --features lockhouse/otel
	$(CARGO) test --locked -p lockhouse-tests --test telemetry -- --ignored traces
	$(CARGO) build --locked -p lockhouse

# A minute of it, with few clients: no answer is wrong or lost.
test-load-subset: tools
	$(CARGO) build --locked --workspace
	target/debug/load --clients 40 --seconds 10 --hostile-seconds 60 --think-ms 2000

# What the official conformance suite of MCP requires of a client and of a server: some minutes, and npm brings the suite.
test-conformance: tools
	tests/conformance/prepare.sh
	$(CARGO) build --locked -p lockhouse -p lockhouse-worker -p lockhouse-python
	tests/conformance/run.sh
	tests/conformance/server.sh

# The inspector of MCP as a client, over standard streams and HTTP: npm brings it.
test-inspector: tools
	tests/inspector/prepare.sh
	$(CARGO) build --locked -p lockhouse -p lockhouse-worker -p lockhouse-python
	tests/inspector/run.sh

# On the kernels of Debian 12 and 13 and Ubuntu 24.04, in QEMU; see tests/kernels/run.sh.
test-kernels: tools
	$(CARGO) build --locked --workspace
	$(CARGO) test --locked -p lockhouse-tests --test sandbox --no-run
	tests/kernels/prepare.sh
	tests/kernels/run.sh

# What takes long as well: some 30 minutes on a machine that does nothing else.
test-full: export LOCKHOUSE_TESTS = full
test-full: test test-upstreams test-bfcl endurance

# Hostile programs at their deadlines, 100,000 short ones, 1,000 kills. ENDURANCE="short --count 5000" for less.
endurance: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/endurance $(ENDURANCE)

# Times at the MCP boundary; see docs/measurements.md. BENCH="--beside OLD/lockhouse" measures an older build, with its worker and
# its Python engine in the same directory, in turns with the one just built, and prints ratios.
bench: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/bench $(BENCH)

# Many AI clients over HTTP at one time, and a hostile one among them; LOAD="--clients 100 --seconds 60" for less.
load: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/load $(LOAD)

# 20 honest clients, with and without each attack on what all clients share; ATTACKS="--only bodies --turns 2" for less.
load-attacks: build
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/load-attacks $(ATTACKS)

# What the audit log adds to a call.
bench-audit:
	$(CARGO) test --release --locked -p lockhouse-gate --lib -- --ignored --nocapture cost

# What learning the shape of a result adds to a call.
bench-shapes:
	$(CARGO) test --release --locked -p lockhouse-catalog --lib -- --ignored --nocapture shapes

# What a decision of the policy costs: median and p99.
bench-policy:
	$(CARGO) build --release --locked -p lockhouse-tests --bin bench-policy
	target/release/bench-policy

# How well search_tools finds what people ask for; LOCKHOUSE_CATALOGUES=DIR has NAME.json of servers, their tools/list.
bench-search: build
	$(CARGO) build --release --locked -p lockhouse-tests --bin bench-search
	target/release/bench-search

# What each layer of the seal adds to a worker's life.
bench-seal:
	$(CARGO) build --release --locked -p lockhouse-tests --bins
	target/release/bench-seal

# Tokens of whole tasks in a model's context, tool by tool and through Lockhouse. TOKENS=--json for programs.
bench-tokens: build
	$(CARGO) build --release --locked -p lockhouse-tests --bin bench-tokens
	tests/upstreams/prepare.sh --subset
	build/upstreams/venv/bin/python -B tests/upstreams/record_workflows.py target/release/lockhouse > build/workflows.json
	target/release/bench-tokens $(TOKENS) < build/workflows.json

# Needs a nightly compiler and `cargo install cargo-fuzz`. What is found is kept in fuzz/found of the crate.
FUZZ_SECONDS ?= 180
fuzz = mkdir -p fuzz/found/$(1) && $(CARGO) +nightly fuzz run $(1) fuzz/found/$(1) fuzz/corpus/$(1) -- \
	-max_total_time=$(FUZZ_SECONDS) -max_len=4096 $(2)
fuzz:
	cd protocol && $(call fuzz,frame_decoder,-malloc_limit_mb=65)
	cd protocol && $(call fuzz,conversation,-malloc_limit_mb=65)
	cd protocol && $(call fuzz,zygote_messages,-malloc_limit_mb=65)
	cd policies && $(call fuzz,policy_document)
	cd policies && $(call fuzz,decision)

# Invalid reads and writes in the tests of the files that have `unsafe` blocks. Needs valgrind, and for Miri a nightly compiler with it.
memory-checks:
	packaging/check-memory

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked -p lockhouse -p lockhouse-base --features lockhouse/otel -- -D warnings
	if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --locked --all-features check bans licenses sources; fi
	CARGO="$(CARGO)" packaging/check-advisories
	if command -v systemd-analyze >/dev/null 2>&1; then packaging/systemd/check; else echo "no systemd-analyze: units are not checked"; fi
	if command -v promtool >/dev/null 2>&1; then promtool check rules packaging/prometheus/alerts.yml; fi

install: build
	packaging/install.sh "$(PREFIX)"

# build/lockhouse_VERSION_amd64.deb; needs cargo-deb.
package: build
	packaging/deb/pack
	if command -v lintian >/dev/null 2>&1; then lintian --fail-on error build/lockhouse_*.deb; fi

# The package in a fresh Debian root, and its units under systemd there where systemd-nspawn can start one; as root.
test-package: package
	packaging/deb/smoke-test
	packaging/systemd/boot-test

# build/lockhouse.mcpb, for Claude Desktop.
package-mcpb: build
	packaging/mcpb/pack

# The image localhost/lockhouse, and what it answers; needs podman.
container: package
	packaging/container/smoke-test

tools:
	@packaging/check-tools

tools-for-tests:
	@packaging/check-tools npm git

clean:
	$(CARGO) clean
	rm -rf build
