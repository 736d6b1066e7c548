# The commands of wirelab's developers. `make help` lists them.
.PHONY: help quick build check test test-endpoints setup lint format deny prose docs gallery reference results unit python on-cluster image dist cluster cluster-check cluster-down test-cluster test-pages test-quiet test-slow \
	check-browsertime calibration audit fuzz faults kills sanitize bench-peers bench-limits bench-engine agreement bench-query bench-null-server chart power clean

CARGO ?= cargo
# The build folder of cargo, from the user's environment if set.
WIRELAB := $(or $(CARGO_TARGET_DIR),target)/release/wirelab
# The program of the tests.
TESTED := $(or $(CARGO_TARGET_DIR),target)/tests/wirelab
IMAGE := target/image/wirelab.tar
# Settings of the test cluster (docs/cluster.md).
NODES ?= 2
PROXY ?= nftables
# Endpoints of the image besides the built-in one.
ENDPOINTS ?=
# Endpoints that test-endpoints omits, separated by commas.
EXCEPT ?=
# How long each target of fuzz runs.
FUZZ_SECONDS ?= 60
# How many runs are killed, over all labs.
KILLS ?= 1000
# How long the audit runs.
AUDIT_MINUTES ?= 60
# Compiles our own crates with clippy's compiler, so that one compilation gives the programs and the lints.
LINTED := --config 'build.rustc-workspace-wrapper="clippy-driver"' --config 'env.CLIPPY_ARGS="-Dwarnings__CLIPPY_HACKERY__"'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quick: build ## build, and compare HTTP/1.1, HTTP/2 and HTTP/3 on this machine in about a minute
	$(WIRELAB) run quick

build:
	@echo "== building wirelab (the first time this takes about 15 minutes on two processors)"
	@tests/compiled.py restore release
	$(CARGO) build --release --locked -p wirelab
	@tests/compiled.py keep release
	@deploy/strip.sh $(WIRELAB)

check: deny prose format ## formatting, and unit tests with the lints of their crates: the inner loop of development
	@tests/compiled.py restore tests
	$(CARGO) test $(LINTED) --profile tests --locked --workspace --lib --bins
	@tests/compiled.py keep tests

test: setup deny prose format unit python ## everything that must pass: formatting, lints, every test; skips and retries are listed at the end (WIRELAB_TESTS=strict)

setup:
	@echo "== what the tests need"
	@tests/setup.sh

lint: deny prose format ## formatting, and lints without a test
	@echo "== lints"
	$(CARGO) clippy --profile tests --locked --workspace --all-targets -- -D warnings

format:
	@echo "== formatting"
	$(CARGO) fmt --all --check

deny: ## licences, sources, duplicates and advisories of dependencies (deny.toml)
	@echo "== dependencies"
	@tests/deny.sh
	@tests/test_advisories.py --quiet

prose: ## check the wording of all pages against the rules in tests/prose (seconds)
	@echo "== prose"
	@tests/prose/test_rules.py --quiet
	@tests/prose/check.py

# Test programs run one after the other. Those called `physics` run alone what other work disturbs, the others run all
# tests side by side. make test-quiet, the benchmarks and the cluster use the program of `make build`.
unit:
	@tests/audit/test_audit.py --quiet
	@tests/test_compiled.py --quiet
	@tests/compiled.py restore tests
	@MAKE="$(MAKE)" tests/suite.py $(CARGO) $(LINTED) --profile tests --locked
	@tests/compiled.py keep tests

python: ## test the Python package against the program of the tests (installs its requirements into the user's cache)
	@test -x $(TESTED) || $(CARGO) build $(LINTED) --profile tests --locked -p wirelab
	@WIRELAB="$(abspath $(TESTED))" tests/python.sh

# Only where Kubernetes has been built (test-cluster); unit asks.
on-cluster: image
	$(CARGO) test --release --locked -p wirelab --test cli -- --ignored --exact kubernetes::a_study_runs_in_pods_in_short

test-endpoints: build ## unit tests, installation and contract suite of all endpoints; writes docs/endpoints.md (EXCEPT=c-lsquic,dotnet)
	@EXCEPT=$(EXCEPT) WIRELAB=$(WIRELAB) tests/endpoints.sh

# The flags apply to linking only, so cargo rebuilds only the program itself.
image: ## the container image as an archive, without a container engine: target/image/wirelab.tar (ENDPOINTS="envoy go-grpc-xds")
	$(CARGO) rustc --release --locked -p wirelab --bin wirelab -- -C target-feature=+crt-static -C strip=symbols
	mkdir -p target/image/context
	cp $(WIRELAB) deploy/nsswitch.conf target/image/context/
	$(if $(ENDPOINTS),$(WIRELAB) endpoints install $(ENDPOINTS))
	deploy/endpoints.py $(WIRELAB) target/image/context/root $(ENDPOINTS)
	deploy/archive.py deploy/Containerfile target/image/context localhost/wirelab:dev $(IMAGE)

# A build of its own, without the folders of this machine in messages of panics.
dist: export CARGO_TARGET_DIR := target/dist-build
dist: export RUSTFLAGS := --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo --remap-path-prefix=$(CURDIR)=/wirelab
dist: ## the files of a release, in target/dist: archive, Debian package, image, bill of materials, checksums (docs/installing.md)
	$(MAKE) image
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} deploy/dist.py $(CARGO_TARGET_DIR)/release/wirelab target/dist --image $(IMAGE)
	@cat target/dist/SHA256SUMS

cluster: cluster-check image ## a Kubernetes cluster with the image, for tests (root; NODES=3, PROXY=iptables; docs/cluster.md)
	@tests/cluster/cluster.sh up --nodes $(NODES) --proxy $(PROXY) --image $(IMAGE)

cluster-check:
	@tests/cluster/cluster.sh check

cluster-down: ## remove every trace of that cluster
	@tests/cluster/cluster.sh down

test-cluster: ## the tests that need this cluster (root; installs packages; builds Kubernetes the first time)
	@tests/setup.sh cluster
	$(MAKE) image ENDPOINTS="envoy go-grpc-xds"
	NODES=$(NODES) PROXY=$(PROXY) $(CARGO) test --release --locked -p wirelab --test cli -- --ignored --nocapture --test-threads=1 --skip in_short cluster:: crowd:: helm:: kubernetes::

test-slow: setup ## what takes minutes of processor time: the whole contract of the built-in endpoint, all tutorials, long bisection
	$(CARGO) test $(LINTED) --profile tests --locked --workspace --test cli -- --ignored bisect:: contract:: tutorial::

test-pages: setup ## compare browsers' first bytes with the round trips of handshakes (a quiet machine, some minutes)
	$(CARGO) test --release --locked -p wirelab --test physics -- --ignored pages::

test-quiet: setup ## what needs a quiet machine or minutes: high rates, all links, a million requests, test-pages (before releases)
	$(CARGO) test --release --locked --workspace --test physics -- --ignored

check-browsertime: build ## compare load events of wirelab and browsertime (root; a quiet machine; a quarter of an hour)
	WIRELAB_ENDPOINTS=tests/browsertime $(WIRELAB) endpoints install browsertime
	WIRELAB_ENDPOINTS=tests/browsertime $(WIRELAB) run tests/browsertime/study.toml

calibration: build ## compare clients and the kernel with known delays of 1, 10 and 100 ms (about twelve minutes)
	$(WIRELAB) run tests/calibration/sequential.toml --out wirelab-runs/calibration-sequential
	$(WIRELAB) run tests/calibration/study.toml --out wirelab-runs/calibration
	$(WIRELAB) report --out wirelab-runs/calibration-sequential --format csv | python3 tests/calibration/beyond.py
	tests/calibration/floor.py $(WIRELAB)
	$(WIRELAB) report --out wirelab-runs/calibration --format csv | python3 tests/calibration/table.py

audit: build ## false verdicts, power and coverage on this machine: docs/audit.md and target/audit.json (AUDIT_MINUTES=60)
	tests/audit/audit.py $(WIRELAB) --minutes $(AUDIT_MINUTES) --page docs/audit.md --json target/audit.json

fuzz: ## fuzz the readers of foreign text and bytes by coverage (FUZZ_SECONDS=60 per target, FUZZ_TARGETS="http2 study")
	FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz.py $(FUZZ_TARGETS)

faults: ## fail each operation of a run that changes files or starts something, or kill wirelab there (strace; more than ten minutes)
	WIRELAB_FAULTS=all $(CARGO) test $(LINTED) --profile tests --locked --workspace --test cli -- --nocapture faults::

kills: ## kill wirelab at random moments of runs in the labs fake, loopback and netns (KILLS=1000; half an hour)
	WIRELAB_KILLS=$(KILLS) $(CARGO) test $(LINTED) --profile tests --locked --workspace --test cli -- --nocapture killed_at_random::

sanitize: ## the tests of crates with unsafe code, under AddressSanitizer (a quarter of an hour)
	tests/sanitize.sh $(CARGO)

agreement: build ## the verdicts of studies with the load engine beside those with the built-in client (about 20 minutes)
	tests/bench/agreement.py $(WIRELAB)

bench-peers: build ## compare the load generator with h2load, wrk, oha and ghz (installs them; LOADS="h3 100k"; half an hour)
	tests/bench/peers.sh $(LOADS)

bench-limits: build ## memory, open connections and lag of the load generator (LIMITS=lag; some minutes)
	tests/bench/limits.sh $(LIMITS)

bench-query: ## how long a query over ten million requests takes (DuckDB; a minute)
	@tests/python.sh --run tests/bench/query.py

bench-null-server: ## compare the null server with nginx (some minutes)
	tests/bench/null-server.sh

bench-engine: ## compare the load engine with wrk and h2load (BEFORE=PATH: and with an earlier build; some minutes)
	tests/bench/engine.sh $(CASES)

chart: build ## the chart of the README, from the newest archived quick run (update figures and date in README.md by hand)
	$(WIRELAB) report "$$(ls -d studies/quick/results/*/ | tail -1)" --format html > target/quick.html
	docs/chart.py target/quick.html > docs/quick.svg.new
	mv docs/quick.svg.new docs/quick.svg

docs: build ## build the documentation as a web site in target/docs/book, with a gallery of reports (three minutes)
	@WIRELAB=$(WIRELAB) docs/build.sh

gallery: build ## make the pictures of docs/gallery.md again, from the archived runs (Chromium)
	@WIRELAB=$(WIRELAB) docs/gallery.sh

reference: build ## write the pages in docs/reference from the declarations in the code
	$(WIRELAB) reference --out docs/reference

results: build ## compute the report beside each archived run in studies/*/results again
	@for archive in studies/*/results/*/; do $(WIRELAB) report $$archive --format markdown > $$archive/report.md || exit 1; done

power: ## the error rate and the power of the verdicts, by simulation (docs/statistics.md)
	$(CARGO) run --release --locked -p wirelab-stats --example power

clean: ## remove build products and runs of this folder
	$(CARGO) clean
	rm -rf wirelab-runs
