# The one list of commands. `make help` prints it.
# A target does its own set-up; a second run of it is quick. Needs Python 3.11+, make, and nothing else.

PYTHON ?= python3
BIN = .venv/bin
SETUP = PYTHONPATH=platform $(PYTHON) -m operations.set_up
PYTHON_FILES = manage.py inference_engine platform tests benchmarks
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help up setup dev test lint format doctor key lock soak soak-requests fuzz bench bench-scheduler bench-fairness bench-flood bench-steps bench-loop gpu-check check-neon bench-sampling bench-drafts bench-invariance bench-engine bench-accuracy bench-http soak-bulk bench-bulk bench-sockets bench-long bench-gateway bench-admin chaos-quota schema-suite conformance clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

up: setup ## set up, start everything, stay in the foreground; Ctrl-C stops it
	@PYTHONPATH=.:platform exec $(BIN)/python -m operations.up

setup: ## virtual environment, packages, torch, model, kernel; nothing is started
	@$(SETUP)

dev: ## set up, with what tests and linters need
	@$(SETUP) --dev

test: dev ## the whole test suite; ARGS="-k name" passes options to pytest
	@exec $(BIN)/python -m pytest $(ARGS)

conformance: dev ## the official clients' and the OpenAPI document's tests; with BASE_URL, API_KEY and MODEL against a running server
	@CONFORMANCE_EXAMPLES=25 exec $(BIN)/python -m pytest tests/http/conformance $(ARGS)

lint: dev ## ruff, its formatter, mypy and the import rules
	@$(BIN)/ruff check $(PYTHON_FILES)
	@$(BIN)/ruff format --check $(PYTHON_FILES)
	@$(BIN)/mypy
	@PYTHONPATH=.:platform $(BIN)/lint-imports

format: dev ## let ruff format and tidy the code
	@$(BIN)/ruff check --fix $(PYTHON_FILES)
	@$(BIN)/ruff format $(PYTHON_FILES)

doctor: ## what this machine lacks, and which system package brings it
	@PYTHONPATH=platform $(PYTHON) -m operations.doctor

key: setup ## a new API key for the demo tenant, shown once
	@PYTHONPATH=.:platform exec $(BIN)/python -m operations.new_key $(ARGS)

lock: ## the hashed requirement files, made again from the .in files (needs uv)
	@for name in requirements requirements-dev; do \
	  uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-package torch \
	    --override requirements-overrides.txt --custom-compile-command "make lock" \
	    $$name.in -o $$name.txt || exit 1; \
	done

soak: dev ## drive the scheduler at random for long, checking its invariants; ARGS="--steps 200000"
	@$(BIN)/python -m inference_engine.simulation.scheduler_driver $(ARGS)

soak-requests: dev ## 100,000 requests through the real loop with the fake runner: no map grows, nor does the process
	@exec $(BIN)/python -m benchmarks.request_soak $(ARGS)

fuzz: dev ## a million scheduler steps at random, every policy, every invariant checked; some minutes
	@exec $(BIN)/python -m inference_engine.simulation.scheduler_driver --steps 1000000 --check-every 8 $(ARGS)

bench-scheduler: dev ## what plan and apply cost with 10,000 waiting requests of 2,000 tenants
	@exec $(BIN)/python -m inference_engine.simulation.scheduler_benchmark $(ARGS)

bench-fairness: dev ## ServeGen's clients under fcfs and fair, on a simulated clock; ARGS="--data FOLDER"
	@exec $(BIN)/python -m inference_engine.simulation.servegen --data ../shared/data/servegen_m_small $(ARGS)

bench: dev ## static, continuous, chunked, paged, prefix cache: what each gains on the real engine; minutes, plots in var/bench
	@$(BIN)/python -m benchmarks.scheme $(ARGS)

gpu-check: dev ## is this machine's GPU fit to serve? ARGS="--dry-run" rehearses it without one
	@$(BIN)/python benchmarks/gpu_check.py $(ARGS)

check-neon: ## the C++ kernels against plain loops, on this machine and on Arm in qemu (needs qemu-user, g++-aarch64-linux-gnu)
	@cd tests && exec $(PYTHON) -m kernel_program

bench-flood: setup ## one tenant keeps 64 requests in flight, another sends one a second for a minute: its times to the first token
	@exec $(BIN)/python -m benchmarks.flood $(ARGS)

bench-steps: setup ## steps of the engine against a bare loop over the same matrices
	@$(BIN)/python -m benchmarks.engine_steps $(ARGS)

bench-loop: setup ## the loop's own share of a decode step: plan, inputs, sampling, apply, emit; ARGS="--rows 16"
	@$(BIN)/python -m benchmarks.loop_share $(ARGS)

bench-engine: setup ## output tokens a second of the engine in process, in bf16 and int8, on chats of two seeds
	@$(BIN)/python -m benchmarks.engine_throughput $(ARGS)

bench-sampling: setup ## what sampling costs: 64 rows of mixed settings, behind prose and behind random ids
	@$(BIN)/python -m benchmarks.sampling_share $(ARGS)

bench-drafts: setup ## what prompt-lookup drafts gain where the output copies, alone and with eight at once
	@$(BIN)/python -m benchmarks.draft_speed $(ARGS)

bench-invariance: setup ## what batch invariance costs a step, by its number of rows
	@$(BIN)/python -m benchmarks.invariance_cost $(ARGS)

bench-accuracy: setup ## what int8 costs in accuracy: perplexity and greedy agreement; ARGS="--text FILE"
	@$(BIN)/python -m benchmarks.accuracy $(ARGS)

soak-bulk: dev ## GSM8K as one batch beside eight chats, then beside kills of worker, Redis and engine; each line once; some ten minutes
	@PYTHONPATH=.:platform:tests exec $(BIN)/python tests/bulk_soak.py "$${OCTAVO_MODEL_DIR:-var/models/smollm2-135m-instruct}" $(ARGS)

bench-bulk: dev ## a batch alone against the same requests handed straight to the engine; one line of figures
	@PYTHONPATH=.:platform:tests exec $(BIN)/python tests/bulk_speed.py "$${OCTAVO_MODEL_DIR:-var/models/smollm2-135m-instruct}" $(ARGS)

bench-http: dev ## load a running Octavo and print one line of figures; ARGS="--key KEY"
	@$(BIN)/python -m benchmarks.http_streams $(ARGS)

bench-sockets: dev ## a thousand WebSockets on one gateway, 200 streaming from the fake engine; one line of figures
	@PYTHONPATH=.:platform:tests exec $(BIN)/python -m socket_load "$${OCTAVO_MODEL_DIR:-var/models/smollm2-135m-instruct}" $(ARGS)

bench-long: dev ## a long prompt beside 16 decoding streams of a running Octavo; ARGS="--key KEY"
	@$(BIN)/python -m benchmarks.long_prompt $(ARGS)

bench-gateway: dev ## what one gateway process costs: fake engines, real Redis, keys, limits and ledger on
	@PYTHONPATH=.:platform exec $(BIN)/python -m benchmarks.gateway $(ARGS)

bench-admin: dev ## console pages and management API beside a million ledger rows on PostgreSQL
	@PYTHONPATH=.:platform:tests exec $(BIN)/python -m admin_pages $(ARGS)

chaos-quota: dev ## kill everything under load and compare the books; ARGS="--database sqlite"
	@OCTAVO_MODEL_DIR="$${OCTAVO_MODEL_DIR:-var/models/smollm2-135m-instruct}" PYTHONPATH=.:platform:tests \
	  exec $(BIN)/python -m chaos.quota $(ARGS)

schema-suite: dev ## the JSON-Schema-Test-Suite against the masks, with a model of random logits; ARGS="100" values a schema
	@PYTHONPATH=.:tests exec $(BIN)/python -m schema_suite "$${OCTAVO_MODEL_DIR:-var/models/smollm2-135m-instruct}" $(ARGS)

clean: ## remove the virtual environment and caches; the data in var stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
