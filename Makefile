# The house's front door. Every target is thin: the work is in scripts/ and in `weir` itself.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build demo test check doc clean

# The program; another one is given as  make demo WEIR=path/to/weir
WEIR ?= cargo run --quiet --release --bin weir --
# Its options, as in  make demo DEMO=--quick
DEMO ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Debian packages (as root) and os-ken in .venv
	@scripts/setup

demo: setup ## Two tenants on a real switch, what they may not do, what Weir costs; about a minute
	@$(WEIR) demo $(DEMO)

test: ## Format, lints, documentation, and all tests, end to end with Open vSwitch
	@scripts/test

check: ## Only what needs no peer: format, lints, documentation
	@scripts/test --static

build: ## The release binary, target/release/weir
	@cargo build --release --bin weir

doc: ## The API documentation of every crate, target/doc
	@cargo doc --workspace --no-deps

clean: ## Remove what cargo built and the Python environment
	@cargo clean
	@rm -rf .venv
