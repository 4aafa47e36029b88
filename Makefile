# The house's front door. Every target is thin: the work is in scripts/ and in `weir` itself.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The program; another one is given as  make demo WEIR=path/to/weir
WEIR ?= cargo run --quiet --release --bin weir --
# Its options, as in  make demo DEMO=--quick
DEMO ?=
# Options of the comparisons, as in  make bench-relay BENCH="--quick --out results"
BENCH ?=
BENCHES := bench-relay bench-saturation bench-tenants bench-isolation-switch bench-isolation-delays bench-isolation-flood bench-memory bench-networks bench-labels bench-page bench-work bench-provisioning bench-hostile bench-generator

.PHONY: help setup build deb static image demo test check doc book clean $(BENCHES)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Debian packages (as root), os-ken in .venv, Faucet in .venv-faucet, a validator in .venv-openapi, mdBook in .venv-mdbook
	@scripts/setup

demo: setup ## Two tenants on a real switch, what they may not do, what Weir costs; about a minute
	@$(WEIR) demo $(DEMO)

test: ## Format, lints, documentation, and all tests, end to end with Open vSwitch
	@scripts/test

check: ## Only what needs no peer: format, lints, documentation
	@scripts/test --static

bench-relay: ## Weir beside HAProxy as a relay; likewise bench-saturation, -tenants, -isolation-switch, -isolation-delays, -isolation-flood, -memory, -networks, -labels, -page, -work, -provisioning, -hostile, -generator
$(BENCHES): setup
	@$(WEIR) bench $(@:bench-%=%) $(BENCH)

build: ## The release binary, target/release/weir
	@cargo build --release --bin weir

deb: ## A Debian package, target/weir_VERSION_ARCH.deb; see docs/install.md
	@packaging/build-deb

static: ## A program that needs no libc; wants the Rust target x86_64-unknown-linux-musl and musl-tools
	@cargo build --release --bin weir --target x86_64-unknown-linux-musl

image: static ## A container image with that program alone; wants buildah
	@packaging/build-image

doc: ## The API documentation of every crate, target/doc
	@cargo doc --workspace --no-deps

book: setup ## The book of docs/ as a folder of HTML, target/book/html
	@scripts/book

clean: ## Remove what cargo built and the Python environment
	@cargo clean
	@rm -rf .venv
