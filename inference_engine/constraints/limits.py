"""What one grammar may cost, on trial and in earnest."""

from llguidance import LLParserLimits

PARSER_LIMITS = LLParserLimits(
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=200_000,
    step_max_items=50_000,
    max_items_in_row=2_000,
    max_lexer_states=50_000,
    max_grammar_size=100_000,
    verbose_errors=False,
)
"""In llguidance's units. A step's fuel bounds one mask to some 15 ms; 50,000 states are up to 100 MB."""
TRIAL_CPU_SECONDS = 1.0
TRIAL_SECONDS = 2.5
TRIAL_MEMORY_BYTES = 2 * 1024**3
QUEUE_SECONDS = 1.5
"""A constraint that waits longer for its turn is refused with `queue_timeout`."""
MAX_QUEUED = 256
"""Constraints waiting to be compiled, of all tenants."""
MAX_QUEUED_EACH = 64
"""And of one."""
CACHE_SIZE = 256
"""Compiled grammars kept, of all tenants."""
