# What can be done here. `make` alone prints the list; each target is one line of it.

SHELL := bash
.DEFAULT_GOAL := help
RELEASE := $(or $(CARGO_TARGET_DIR),target)/release
# ONLY=create,again -> --only create,again
only := $(if $(ONLY),--only $(ONLY))
# Minutes after which no scenario goes on: what has not ended then has failed.
within := $(if $(WITHIN),--within $(WITHIN))

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: packages
packages: ## install the Debian packages that building and testing need
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust by https://rustup.rs" >&2; exit 1; }
	@sh tests/packages.sh

.PHONY: build
build: packages ## build kk, shell-operator, the lab and the scenarios (release, in target/release)
	cargo build --release -p kk -p kk-lab -p kk-e2e -p shell-operator

.PHONY: image
image: packages ## build the image of shell-operator, without Docker: target/image/shell-operator.tar
	cargo build --release -p shell-operator
	bash deploy/image/build.sh $(RELEASE)/shell-operator $(or $(CARGO_TARGET_DIR),target)/image

.PHONY: programs
programs: packages ## build the programs of Kubernetes and etcd that tests run (once; minutes)
	cargo run --quiet -p kk-lab -- mirror build --programs kubernetes,etcd

.PHONY: test
test: packages ## run all tests that need no hosts
	bash tests/run.sh

.PHONY: e2e
e2e: build ## run kk against real hosts, as root: all scenarios, or ONLY=create,again (list: make e2e-list)
	$(RELEASE)/kk-lab mirror build
	$(RELEASE)/kk-e2e $(only) $(within)

.PHONY: e2e-list
e2e-list: build ## list the scenarios
	$(RELEASE)/kk-e2e --list

.PHONY: bench
bench: build ## measure kk beside a hand-written script (as root) and shell-operator (needs make programs): ONLY=create_3 or ONLY=shell-operator; writes docs/benchmarks.md
	$(RELEASE)/kk-lab mirror build
	$(RELEASE)/kk-e2e bench $(only) --table docs/benchmarks.md

.PHONY: demo
demo: packages ## boot three throw-away hosts, create a cluster on them and show it, as root
	bash tests/e2e/demo.sh

.PHONY: demo-down
demo-down: ## end the demo and remove all it left, but the caches
	cargo build --release --quiet -p kk-lab
	$(RELEASE)/kk-lab down
	rm -rf target/demo

.PHONY: lint
lint: packages ## check formatting and lints, as CI does
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: deny
deny: ## check licences and advisories of all dependencies (installs cargo-deny)
	@command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check

.PHONY: prune
prune: ## remove from the lab's cache what this checkout does not ask for any more, as root
	cargo run --quiet -p kk-lab -- mirror prune

.PHONY: docs
docs: packages ## build the documentation of all crates (target/doc)
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

.PHONY: clean
clean: ## remove what was built here; the lab's cache (KK_LAB_CACHE) stays
	cargo clean
