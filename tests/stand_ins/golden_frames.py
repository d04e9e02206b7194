"""One example of every message, with every field set, as both sides of the wire must read and write it.

The bytes are in tests/contract/golden/*.hex. They are a promise to peers of the version before and after, so
they change only with the contract, on purpose: see tests/contract/regenerate_golden.py.
"""

from pathlib import Path

from inference_engine.contract.codes import Code, FinishReason
from inference_engine.contract.events import (
    Accepted,
    Delta,
    Description,
    Embedding,
    EngineMessage,
    Finished,
    ObservedRow,
    Pong,
    Refused,
    Stats,
    StepObserved,
    Timeline,
    TokenLogprobs,
    Usage,
)
from inference_engine.contract.registry import ReplicaRecord, ReplicaState
from inference_engine.contract.requests import (
    Abort,
    Constraint,
    ConstraintKind,
    Describe,
    Drain,
    GatewayMessage,
    Generate,
    Observe,
    Ping,
    ServiceClass,
    SetTenantShares,
    TenantShare,
)
from inference_engine.contract.sampling import SamplingParams

GOLDEN = Path(__file__).resolve().parents[1] / "contract" / "golden"

SAMPLING = SamplingParams(
    seed=-(2**63),
    max_tokens=64,
    min_tokens=2,
    temperature=0.75,
    top_p=0.5,
    top_k=40,
    min_p=0.25,
    stop_token_ids=(5, 70000),
    ignore_eos=True,
    logprobs=3,
    prompt_logprobs=2,
    presence_penalty=0.5,
    frequency_penalty=-1.5,
    repetition_penalty=1.25,
    logit_bias={70000: -100.0, 0: 2.5},
    bad_words_ids=((7,), (65536, 8)),
    num_draft_tokens=5,
)

TO_ENGINE: dict[str, GatewayMessage] = {
    "generate": Generate(
        request_id="req-1",
        attempt=2,
        prompt_ids=[1, 127, 128, 65535, 65536, 151643],
        output_ids=[9, 8],
        choice=1,
        group_id="group-1",
        sampling=SAMPLING,
        constraint=Constraint(kind=ConstraintKind.REGEX, source="[a-z]+"),
        tenant_id="tenant-1",
        key_id="key-1",
        service_class=ServiceClass.INTERACTIVE,
        weight=1.5,
        deadline_ms=60_000,
        embeds=True,
        reservation_key="octavo:{b:7}:reservation:req-1",
        tokens_per_delta=16,
    ),
    "abort": Abort(request_id="req-1", attempt=2),
    "describe": Describe(),
    "drain": Drain(deadline_ms=5_000),
    "set_tenant_shares": SetTenantShares(
        shares={
            "tenant-1": TenantShare(
                weight=2.0, max_kv_fraction=0.5, max_queued_requests=10, max_queued_tokens=5000
            )
        }
    ),
    "observe": Observe(every=5),
    "ping": Ping(nonce=77),
}

USAGE = Usage(prompt_tokens=6, cached_tokens=4, output_tokens=3)

STATS = Stats(
    num_waiting=1,
    num_running=2,
    waiting_tokens=3,
    blocks_total=40,
    blocks_free=5,
    blocks_cached=6,
    blocks_referenced=7,
    blocks_quarantined=22,
    num_steps=9,
    prompt_tokens=10,
    cached_prompt_tokens=11,
    output_tokens=12,
    num_accepted=13,
    num_refused=14,
    num_finished=15,
    num_aborted=16,
    num_failed=17,
    num_preemptions=18,
    num_recomputed_tokens=19,
    num_computed_tokens=23,
    num_drafted_tokens=29,
    num_accepted_tokens=27,
)

FROM_ENGINE: dict[str, EngineMessage] = {
    "accepted": Accepted(request_id="req-1", attempt=2, prompt_tokens=6, cached_tokens=4, max_tokens=64),
    "delta": Delta(
        request_id="req-1",
        attempt=2,
        token_ids=[7],
        logprobs=[TokenLogprobs(logprob=-0.5, top=[(7, -0.5), (8, -1.25)])],
        prompt_logprobs=[TokenLogprobs(logprob=-2.5, top=[(9, -0.25)])],
    ),
    "finished": Finished(
        request_id="req-1",
        attempt=2,
        reason=FinishReason.STOP,
        code=Code.NON_FINITE_LOGITS,
        stop_token_id=2,
        usage=USAGE,
        timeline=Timeline(
            queued_ms=1.5,
            first_token_ms=2.5,
            finished_ms=9.5,
            num_chunks=4,
            num_preemptions=1,
            num_recomputed_tokens=16,
        ),
        vector=bytes.fromhex("0000003f"),
    ),
    "refused": Refused(
        request_id="req-1",
        attempt=2,
        code=Code.QUEUE_FULL,
        message="4096 wait",
        param="prompt_ids",
        exact_code=Code.TENANT_QUEUE_FULL,
    ),
    "description": Description(
        model="smollm2",
        revision="sha",
        tokenizer_json=b'{"version":"1.0"}',
        tokenizer_zlib=b"packed",
        tokenizer_hash="hash",
        chat_template="{{ messages }}",
        tool_syntax="hermes",
        template_tokens={"eos_token": "<|im_end|>"},
        special_ids=[0, 1, 2],
        end_ids=[2],
        generation_defaults={"temperature": 0.25},
        context_length=8192,
        vocab_size=49152,
        max_request_tokens=4096,
        max_running=64,
        dtype="bfloat16",
        backend="cpu",
        batch_invariant=True,
        fingerprint="print",
        created=1_700_000_000,
        embedding=Embedding(size=1024, is_normalized=True),
    ),
    "stats": STATS,
    "step_observed": StepObserved(
        step=9,
        rows=[ObservedRow(tenant_id="tenant-1", request_id="req-1", start=16, num_tokens=4, samples=True)],
        blocks_by_tenant={"tenant-1": 2},
        step_ms=10.5,
    ),
    "pong": Pong(nonce=77, step=9),
}

RECORD = ReplicaRecord(
    replica_id="host:unix:/run/engine.sock",
    boot_id="b00710",
    address="unix:/run/engine.sock",
    model="smollm2",
    revision="sha",
    fingerprint="print",
    state=ReplicaState.DRAINING,
    protocol_version=1,
    host="host",
    pid=4242,
    started_at=1_700_000_000.5,
    heartbeat_at=1_700_000_001.5,
    stats=STATS,
)


def golden_bytes(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text())
