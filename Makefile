# What can be done here. `make` alone prints the list; each target is one line of it.

SHELL := bash
.DEFAULT_GOAL := help
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Programs are built as a release, tests are not; PROFILE=ci builds both alike, so that nothing is compiled twice.
profile := $(if $(PROFILE),--profile $(PROFILE))
programs := $(TARGET)/$(patsubst dev,debug,$(or $(PROFILE),release))
RELEASE := $(TARGET)/release
# ONLY=create,again -> --only create,again; GROUP=core,today -> --group core,today
only := $(if $(ONLY),--only $(ONLY))$(if $(GROUP),--group $(GROUP))
# Two cores carry two labs; JOBS=1 runs one scenario after the other.
jobs := --jobs $(or $(JOBS),2)
# Minutes after which no scenario goes on: what has not ended then has failed.
within := $(if $(WITHIN),--within $(WITHIN))
# REPEAT=10: the chosen scenarios ten times. BUSY=1: both cores have other work meanwhile.
repeat := $(if $(REPEAT),--repeat $(REPEAT))
busy := $(if $(BUSY),--busy)
# Benches: `fleet` is a program of its own, the others are kk-e2e's.
comma := ,
benches := $(or $(subst $(comma), ,$(ONLY)),fleet all)
lab_benches := $(filter-out fleet,$(benches))

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: packages
packages: ## install the Debian packages that building and testing need
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust by https://rustup.rs" >&2; exit 1; }
	@sh tests/packages.sh

.PHONY: build
build: packages ## build kk, shell-operator, the lab and the scenarios (release, in target/release)
ifdef PROFILE
	cargo build --locked $(profile) --bins --tests
else
	cargo build --locked --release -p kk -p kk-lab -p kk-e2e -p shell-operator -p ks-installer
endif

.PHONY: image
image: packages ## build the image of shell-operator, without Docker: target/image/shell-operator.tar
	cargo build --release -p shell-operator
	bash deploy/image/build.sh $(RELEASE)/shell-operator $(TARGET)/image

.PHONY: image-ks
image-ks: packages ## build the image of ks-installer with a payload in it: PAYLOAD=DIR HELM=FILE; target/image/ks-installer.tar
	cargo build --release -p ks-installer
	bash deploy/ks-installer/base.sh $(TARGET)/image/ks-base.tar
	BASE=$(abspath $(TARGET))/image/ks-base.tar FILES=deploy/ks-installer/files.sh COMMAND=run bash deploy/image/build.sh $(RELEASE)/ks-installer $(TARGET)/image

.PHONY: package
package: packages ## build the .deb, the .tar.gz, the SBOM and SHA256SUMS of kk into target/package (ARCH=arm64, MINISIGN_KEY=FILE)
	bash deploy/package/build.sh $(TARGET)/package

.PHONY: programs
programs: packages ## build the programs of Kubernetes, etcd and helm that tests run (once; minutes)
	cargo run --quiet -p kk-lab -- mirror build --programs kubernetes,etcd,helm

.PHONY: test
test: packages ## run all tests that need no hosts
	PROFILE=$(PROFILE) bash tests/run.sh

.PHONY: fuzz
fuzz: packages ## test the readers of foreign data (hosts, registries, files, the API) with random inputs, FUZZ_SECONDS=60 for each target; prints the number of runs
	ARBTEST_BUDGET_MS=$(or $(FUZZ_SECONDS),60)000 cargo test --locked $(profile) --lib -- fuzz_ --nocapture

.PHONY: e2e
e2e: build ## run kk against real hosts, as root: the core, GROUP=core,today as CI does, or ONLY=create,again; JOBS=1, REPEAT=10, BUSY=1
	$(programs)/kk-e2e $(only) $(jobs) $(within) $(repeat) $(busy)

.PHONY: e2e-all
e2e-all: build ## run all scenarios, as root (hours)
	$(programs)/kk-e2e --all $(jobs) $(within) $(repeat) $(busy)

.PHONY: e2e-affected
e2e-affected: build ## run the scenarios that cover what differs from SINCE=REVISION (HEAD without it), as root
	$(programs)/kk-e2e --affected $(or $(SINCE),HEAD) $(jobs) $(within) $(repeat) $(busy)

.PHONY: test-lab
test-lab: packages ## test that the lab leaves nothing behind, as root; no lab may be up
	cargo test --locked $(profile) --test leaves_nothing -- --ignored

.PHONY: e2e-list
e2e-list: build ## list the groups and their scenarios
	$(programs)/kk-e2e --list

.PHONY: bench
bench: build ## measure kk beside a hand-written script (as root) and shell-operator (needs make programs): ONLY=create_3, ONLY=day2, ONLY=kubesphere, ONLY=shell-operator, ONLY=so_soak (20 minutes) or ONLY=fleet (simulated hosts, no root); writes docs/benchmarks.md
	$(if $(lab_benches),$(RELEASE)/kk-lab mirror build)
	$(if $(filter fleet,$(benches)),cargo build --locked --release -p kk-fleet)
	@code=0; set -x; \
	$(if $(lab_benches),$(RELEASE)/kk-e2e bench $(addprefix --only ,$(filter-out all,$(lab_benches))) --table docs/benchmarks.md || code=1;) \
	$(if $(filter fleet,$(benches)),$(RELEASE)/kk-fleet --kk $(RELEASE)/kk --artefacts $(TARGET)/e2e || code=1;) \
	exit $$code

.PHONY: demo
demo: packages ## boot three throw-away hosts, create a cluster on them and show it, as root
	bash tests/e2e/demo.sh

.PHONY: demo-down
demo-down: ## end the demo and remove all it left, but the caches
	cargo build --locked --profile ci --quiet --bin kk-lab
	$(TARGET)/ci/kk-lab down --all
	rm -rf target/demo

.PHONY: lint
lint: packages ## check formatting, lints, shell scripts and prose, as CI does
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	cargo fmt --all --check
	cargo clippy --locked $(profile) --all-targets -- -D warnings
	bash tests/shellcheck.sh
	bash tests/prose.sh

.PHONY: lint-all
lint-all: lint ## check kk-fleet, too, which CI does not build
	cargo clippy --locked $(profile) --workspace --all-targets -- -D warnings

.PHONY: deny
deny: packages ## check licences, sources, duplicates and advisories of all dependencies
	bash tests/deny.sh

.PHONY: prune
prune: ## remove from the lab's cache what this checkout does not ask for any more, as root
	cargo run --quiet -p kk-lab -- mirror prune

.PHONY: docs
docs: packages ## build the documentation of all crates (target/doc)
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

.PHONY: clean
clean: ## remove what was built here; the lab's cache (KK_LAB_CACHE) stays
	cargo clean
