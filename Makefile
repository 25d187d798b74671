# `make demo` runs Hotline with something in it, `make test` proves it. Each target installs what it needs and is missing
# (`tools/setup`).

TARGET := $(or $(CARGO_TARGET_DIR),target)
BROWSER := tests/browser
CLIENTS := tests/clients
LINTERS := $(TARGET)/packaging/linters
MODULES := $(BROWSER)/node_modules/.package-lock.json

# What is shipped, what it is made of, and the run of the load that it is made for: every scenario, briefly.
DIST := $(TARGET)/dist/hotline
SHIPPED := $(shell git ls-files Cargo.toml Cargo.lock actors persistence src 2>/dev/null)
# What tests are built with. Cargo builds every crate anew for another set of features, so all that builds tests names this one.
TESTED := --workspace --all-features
# The binary as tests run it; an example beside it makes cargo count what tests ask of crates.
BINARY := cargo build $(TESTED) --bin hotline --example openapi --example stop_test_services
# Ends what tests share.
STOP := $(TARGET)/debug/examples/stop_test_services
# The release that proofs measure, and the load they put on it.
RELEASE := $(TARGET)/release/hotline
LOAD := $(shell git ls-files benches/load 2>/dev/null)
# Tests that kill the service, or take its database away, at moments of their own.
KILLS := test(/^(kill|histories|outage|outbox::kill)::/)
# Where Debian keeps the tools of the compiler's own LLVM.
LLVM := $(shell rustc -vV 2>/dev/null | sed -n 's/^LLVM version: \([0-9]*\)\..*/\1/p')
LLVM_BIN := /usr/lib/llvm-$(LLVM)/bin
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
TRAINING := run --seconds 5 --rounds 1 --connections 32 --tickets 2000 --pool 8000

.PHONY: setup demo demo-cluster test proofs build-tests build-release test-rust test-browser test-document test-times measured kills browser-proofs load-smoke load-desks load-sockets load-streams widget panel-pages panel-types schemathesis openapi configuration check lint deny bench faults cluster dist package load neighbours schedules webhooks campaigns fmt postgres wrk pgo nextest node chromium firefox clients java packaging proxies upgrade fixture clients-generate clients-test alerts promtool packaging-lint site python packaging-deb clients-proofs clients-package clients-n8n test-clients

# Options of `hotline demo` go into ARGS: make demo ARGS='--listen 127.0.0.1:9000'
demo: postgres
	@if [ ! -x $(TARGET)/debug/hotline ]; then \
		echo "Building Hotline for the first time: about 320 crates, a few minutes. Later builds take seconds."; \
	fi
	cargo build --bin hotline
	@echo "Starting Hotline with sample data, which is kept in ./hotline-data."
	@echo "It is ready when it prints its address, within half a minute the first time. Stop it with Ctrl-C."
	$(TARGET)/debug/hotline demo $(ARGS)

# Three processes on one PostgreSQL with a synchronous standby, behind a balancer: traffic goes on while one after the other is
# killed, and every line says what is seen. Ctrl-C ends all of it. Built as tests are, of which its parts are.
demo-cluster: postgres
	$(BINARY) --example demo_cluster
	$(TARGET)/debug/examples/demo_cluster

# Every test of correctness. Options of nextest go into ARGS; with any, only what they name is run, and no browser.
test:
ifeq ($(strip $(ARGS)),)
	@tests/parts.sh test build-tests test-rust test-clients test-browser test-document test-times
else
	@$(MAKE) --no-print-directory test-rust
endif

# What takes longer, measures, or needs much beside the tests: after `make test`, before a release. The release is built once, for
# all that is measured.
proofs:
	@tests/parts.sh proofs build-tests build-release measured neighbours faults cluster kills schedules webhooks campaigns \
		browser-proofs schemathesis clients clients-test clients-proofs clients-package clients-n8n load-smoke \
		packaging packaging-lint packaging-deb upgrade

# All that tests and proofs are made of, so that what follows is their own time. Examples beside the tests: cargo counts what
# all of them ask of crates, and builds every crate once.
build-tests: nextest
	cargo nextest run --no-run $(TESTED)

build-release: $(RELEASE)

$(RELEASE): $(SHIPPED) $(LOAD)
	cargo build --release --bin hotline --example load
	@touch $@

# What the tests share, the service and its PostgreSQL, is stopped whatever came of them; it says if they have harmed it.
test-rust: postgres nextest
	@status=0; \
	cargo nextest run $(TESTED) $(ARGS) || status=$$?; \
	if [ -z "$(ARGS)" ] && [ "$$(id -u)" -eq 0 ]; then \
		cargo nextest run --profile as-root $(TESTED) --run-ignored only -E 'test(/_as_root$$$$/)' || status=$$?; \
	fi; \
	$(STOP) || status=1; \
	exit $$status

# The alert rules, and what they do with series of an outage, by Prometheus' own tool.
alerts: promtool
	promtool check rules packaging/prometheus/hotline.rules.yml
	promtool test rules packaging/prometheus/hotline.rules.test.yml

# The widget and the panel in Chromium, their main paths in Firefox, against services of their own; ARGS names some of the files
# in tests/browser/cases. Pages are looked at in one language and one theme; HOTLINE_BROWSER_PROOFS=1 looks at all, and measures.
test-browser: postgres chromium firefox panel-types
	node $(BROWSER)/run.mjs $(ARGS)

# The service against its own document, briefly: `make schemathesis` has more requests of each kind, and each boundary of it.
test-document:
	@$(MAKE) --no-print-directory schemathesis ARGS='--max-examples 5 --phases examples,fuzzing'

# The generated part of the clients is that of the API document.
test-clients:
	python3 clients/generate --check

# Where the time of the last run went. Nextest keeps its reports here, wherever tests are built.
test-times:
	@$(TARGET)/debug/examples/test_times target/nextest/default/junit.xml $(TARGET)/nextest/browser.xml

# Folders of tests are in memory, where there is enough of it; of what measures or runs for long, they are on disk.
measured kills faults cluster upgrade schedules webhooks campaigns neighbours load-sockets load-streams: export HOTLINE_TESTS_ON_DISK := 1

# What measures time or memory, one at a time with nothing beside it.
measured: postgres nextest
	@status=0; \
	cargo nextest run --profile proofs $(TESTED) -E 'test(/_measured$$$$/) - test(/^(neighbours|outbox::upgraded)::/)' $(ARGS) || status=$$?; \
	$(STOP) || status=1; \
	exit $$status

# Twenty kills at random moments, ten thousand messages that survive some, ten thousand random histories of people, and a longer
# outage, under load.
kills: postgres nextest
	KILLS_LONG=1 cargo nextest run --profile proofs $(TESTED) --test durability -E '$(KILLS)' $(ARGS)

# Every page in every language, theme and size, and how long each takes.
browser-proofs: postgres chromium firefox $(MODULES)
	$(BINARY)
	HOTLINE_BROWSER_PROOFS=1 node $(BROWSER)/run.mjs $(ARGS)

# A few seconds of the load on the release that is there: that it runs, and that nothing it asks for is refused.
load-smoke: postgres wrk $(RELEASE)
	HOTLINE_LOAD_BINARY=$(RELEASE) $(TARGET)/release/examples/load run --seconds 2 --rounds 1 --connections 16 --tickets 500 \
		--pool 2000

# The one script that is served, of the modules it is written in; a test says when it is not what they give.
widget: $(MODULES)
	node $(BROWSER)/bundle.mjs widget

# The same of the panel's pages.
panel-pages: panel-types
	node $(BROWSER)/bundle.mjs panel

# Checks the types of the panel's pages; those of what the API answers are made of its own document, which the build prints.
panel-types: $(MODULES)
	$(BINARY)
	node $(BROWSER)/bundle.mjs --types
	$(BROWSER)/node_modules/.bin/tsc -p src/panel/pages

# A cluster of the release before becomes one of this, member by member and under load. HOTLINE_BASELINE_BINARY names the binary of
# that release; without it, it is built.
upgrade: postgres nextest
	@binary=$$(tools/baseline) || exit 1; \
	HOTLINE_BASELINE_BINARY=$$binary cargo nextest run --profile cluster $(TESTED) --test cluster --run-ignored only \
		-E 'test(/^rolling::.*_upgraded_/)' $(ARGS)

# Keeps a release in tests/fixtures: its state after a kill under load, and its API document. RELEASED names its binary.
fixture: postgres nextest
	HOTLINE_TEST_BINARY=$(abspath $(RELEASED)) cargo nextest run --profile proofs $(TESTED) --test durability \
		--run-ignored only -E 'test(=baseline::make::a_release_is_kept)'

# Hotline behind nginx and Caddy, with the configurations of `packaging/`.
packaging: postgres nextest proxies
	cargo nextest run --profile proofs $(TESTED) --test durability --run-ignored only -E 'test(/^proxies::/)' $(ARGS)

# The documents as a site, in target/site/html, with a page for each resource of the API, each page as Markdown, and llms.txt;
# fails if a link or an anchor leads nowhere.
site: target/site/venv/bin/mkdocs
	target/site/venv/bin/mkdocs $(or $(ARGS),build) --strict --config-file tools/site/mkdocs.yml

target/site/venv/bin/mkdocs: tools/site/requirements.txt
	@tools/setup python
	python3 -m venv --clear target/site/venv
	target/site/venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# What is packaged, by the linter of each kind.
packaging-lint: $(LINTERS)/bin/yamllint
	@tools/setup linters
	PATH="$(abspath $(LINTERS))/bin:$$PATH" $(LINTERS)/bin/python tests/packaging/lint.py

$(LINTERS)/bin/yamllint: tests/packaging/requirements.txt
	@tools/setup python
	python3 -m venv --clear $(LINTERS)
	$(LINTERS)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# The Debian package of a binary, installed in a bare Debian, started, upgraded and removed; and the ten commands of
# docs/operate/README.md in another. Needs root. PACKAGED names the binary; by default it is built without optimising.
packaging-deb: $(if $(PACKAGED),,postgres)
	@tools/setup deb
	$(if $(PACKAGED),,cargo build --bin hotline)
	tests/packaging/deb.sh $(or $(PACKAGED),$(TARGET)/debug/hotline)
	tests/packaging/ten_commands.sh $(or $(PACKAGED),$(TARGET)/debug/hotline)

# The service against its own document, with requests nobody would think of; needs Python. Options of `st run` go into
# ARGS.
schemathesis: postgres
	$(BINARY)
	tests/contract/schemathesis.sh $(ARGS)

# Clients made of the document by five generators: they compile, and have a first conversation with the service. Needs
# Python, Node and Java.
clients: postgres java $(CLIENTS)/node_modules/.package-lock.json
	$(BINARY)
	$(CLIENTS)/clients.sh

# The generated part of our own client libraries, from the API document; a test says when it is not that.
clients-generate:
	python3 clients/generate

# Our own client libraries, without a service and beside one; ARGS names some of the parts: make clients-test ARGS=typescript
clients-test: postgres node python
	$(BINARY)
	clients/test.sh $(ARGS)

# Ten thousand writes of each of them while the service is killed ten times, a list that changes while it is read, and events over
# lost connections; ARGS names one of them. Ten minutes.
clients-proofs: postgres node python
	$(BINARY)
	clients/proofs.sh $(ARGS)

# The node for n8n, in a real n8n from the registry beside a service; two gigabytes in target/clients. ARGS=quick does what needs
# neither.
clients-n8n: postgres node python
	$(if $(filter quick,$(ARGS)),,$(BINARY))
	clients/n8n.sh $(ARGS)

# Their packages, checked as registries and users see them; in target/clients/packages.
clients-package: node python
	clients/package.sh

# The service under faults of disk, database, clock and clients, ten minutes at most; the table is in
# target/faults/summary.md. Needs a C compiler, and root for a disk of its own. Options of nextest go into ARGS.
faults: postgres nextest
	@rm -rf $(TARGET)/faults
	cargo nextest run --no-run $(TESTED) --test faults
	@status=0; \
	cargo nextest run --profile faults $(TESTED) --test faults --run-ignored only $(ARGS) || status=$$?; \
	cat $(TARGET)/faults/summary.md || status=1; \
	exit $$status

# Three processes on one PostgreSQL with a synchronous standby, while processes are killed and stopped under load; the table is
# in target/cluster/summary.md. Nine minutes; ARGS=long repeats each of eight faults for CLUSTER_LONG minutes.
CLUSTER_LONG ?= 8
cluster: postgres nextest
	@rm -rf $(TARGET)/cluster
	cargo nextest run --no-run $(TESTED) --test cluster
	@status=0; \
	$(if $(filter long,$(ARGS)),CLUSTER_LONG=$(CLUSTER_LONG)) cargo nextest run --profile cluster $(TESTED) --test cluster \
		--run-ignored only $(filter-out long,$(ARGS)) || status=$$?; \
	cat $(TARGET)/cluster/summary.md || status=1; \
	exit $$status

# Two thousand scheduled messages while the service is killed ten times, and while the database is away for twenty seconds;
# prints how late they were. Two minutes.
schedules: postgres nextest
	SCHEDULES_LONG=1 cargo nextest run --profile proofs $(TESTED) --test durability --no-capture -E 'test(/^schedules::/)' $(ARGS)

# Ten thousand events that wait for a webhook, while the service is killed nine times. Two minutes.
webhooks: postgres nextest
	WEBHOOKS_LONG=1 cargo nextest run --profile proofs $(TESTED) --test durability --no-capture -E 'test(/^webhooks::/)' $(ARGS)

# A campaign of twenty thousand recipients while the service is killed ten times and the provider errs, another while the
# database is away, and memory with a million. Ten minutes.
campaigns: postgres nextest
	CAMPAIGNS_LONG=1 cargo nextest run --profile proofs $(TESTED) --test durability --no-capture -E 'test(/^campaigns::/)' $(ARGS)

# What one company's heavy work does to another's requests, and a phone number at the highest rate, on the release and without
# anything beside it; prints the figures. Three minutes.
neighbours: postgres nextest $(RELEASE)
	@status=0; \
	HOTLINE_TEST_BINARY=$(abspath $(RELEASE)) cargo nextest run --profile proofs $(TESTED) --test api --no-capture \
		-E 'test(/^(neighbours::heavy_work|outbox::upgraded::)/)' $(ARGS) || status=$$?; \
	$(STOP) || status=1; \
	exit $$status

# Two thousand visitors who talk, and ten thousand who are idle and return after a restart, with the release that proofs measure;
# prints the figures `benches/README.md` keeps. ARGS=shipped measures the binary that is shipped. The system must allow 20,000
# open files.
# With ARGS=peers, Hotline beside ejabberd, Prosody, NATS, socket.io and ws, which it installs: apt-get as root, npm under
# target/peers. Options follow: ARGS='peers --connections 10000 --seconds 20 --keep'. HOTLINE_LOAD_BINARY names a binary that is
# there, in place of the one that is shipped.
ifneq ($(filter peers,$(ARGS)),)
load-sockets: postgres node $(if $(HOTLINE_LOAD_BINARY),,$(DIST))
	HOTLINE_LOAD_BINARY=$(or $(HOTLINE_LOAD_BINARY),$(DIST)) node benches/peers/sockets/main.mjs $(ARGS)
else
load-sockets: postgres nextest $(if $(filter shipped,$(ARGS)),$(DIST),$(RELEASE))
	HOTLINE_TEST_BINARY=$(abspath $(if $(filter shipped,$(ARGS)),$(DIST),$(RELEASE))) cargo nextest run $(TESTED) --test webchat \
		--run-ignored only --no-capture -E 'test(/^load::/)' $(filter-out shipped,$(ARGS))
endif

# Five thousand open streams of events. The system must allow 11,000 open files.
load-streams: postgres nextest
	cargo nextest run $(TESTED) --test api --run-ignored only --no-capture -E 'test(/^events::load::/)' $(ARGS)

# What must hold before a commit.
check: lint
	$(MAKE) test

# The part of it that runs nothing.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# Dependencies: advisories, licences, versions that are there twice, and origin. ARGS names some of these.
deny:
	@tools/setup deny
	cargo deny check $(ARGS)

# The API document as a file; a test says when it is not what the code says.
openapi:
	@mkdir -p $(TARGET)
	cargo run -q --example openapi > $(TARGET)/openapi.json
	mv $(TARGET)/openapi.json openapi.json

# The options of the service in docs/configuration.md and in the file of the package, as in --help; a test compares them.
configuration: nextest
	UPDATE_DOCUMENTS=1 cargo nextest run $(TESTED) --test contract written::every_option_of_the_service \
		packaged::the_packages_file

bench:
	cargo bench $(ARGS)

# The whole service under load beside yardsticks, forty minutes: docs/benchmarks.md. Options and the other runs go into
# ARGS: make load ARGS='run --seconds 2 --rounds 1 send read', make load ARGS=soak, ARGS=memory, ARGS=grown, ARGS=cluster,
# ARGS='against OTHER/hotline'
load: postgres wrk $(DIST)
	cargo build --release --example load
	HOTLINE_LOAD_BINARY=$(DIST) $(TARGET)/release/examples/load $(ARGS)

# Hotline beside Request Tracker, django-helpdesk and Synapse, which it installs: apt-get as root, pip under target/peers. Options
# go into ARGS: make load-desks ARGS='peers --seconds 2 --rounds 1 --conversations 100'. HOTLINE_LOAD_BINARY names a binary that
# is there, in place of the one that is shipped.
load-desks: postgres node python $(if $(HOTLINE_LOAD_BINARY),,$(DIST))
	HOTLINE_LOAD_BINARY=$(or $(HOTLINE_LOAD_BINARY),$(DIST)) node benches/peers/desks/main.mjs $(ARGS)

# The binary that is shipped, and that `make load` measures: built once to note which way a run of the load goes through it,
# and once more with what it noted. Twenty minutes on two cores.
dist: $(DIST)
	@echo "$(DIST)"

$(DIST): $(SHIPPED) | postgres wrk pgo
	cargo build --release --example load
	PATH="$(LLVM_BIN):$$PATH" cargo pgo instrument build -- --bin hotline
	HOTLINE_LOAD_BINARY=$(TARGET)/$(HOST)/release/hotline $(TARGET)/release/examples/load $(TRAINING)
	PATH="$(LLVM_BIN):$$PATH" cargo pgo optimize build -- --bin hotline
	@mkdir -p $(@D)
	cp $(TARGET)/$(HOST)/release/hotline $@

# All files of a release, and their checksums.
package: $(DIST)
	@tools/setup deb sbom
	tools/package $(DIST)

fmt:
	cargo fmt --all

$(MODULES): $(BROWSER)/package.json $(BROWSER)/package-lock.json | node
	cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package.json $(CLIENTS)/package-lock.json | node
	cd $(CLIENTS) && npm ci --ignore-scripts --no-audit --no-fund
	touch $@

# What daily work needs, as far as it is missing, and the hook that checks messages of commits.
setup:
	@tools/setup

# What a target above needs: nothing is installed twice.
postgres nextest node chromium firefox java wrk pgo proxies promtool python:
	@tools/setup $@
