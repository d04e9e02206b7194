"""A row as the gate puts it into the ledger's stream."""

STREAM_ROW = {
    "request_id": "r1",
    "tenant_id": "7",
    "tenant_name": "Acme",
    "key_id": "k",
    "key_name": "key",
    "model": "m",
    "endpoint": "/v1/completions",
    "prompt_tokens": "7",
    "output_tokens": "3",
    "admitted_at": "10",
    "finished_at": "12",
    "ending": "finished",
    "source": "authoritative",
}
