"""One completed step as operators see it."""

from inference_engine.contract.events import ObservedRow, StepObserved

from .pipeline import CompletedStep


def observed_step(completed: CompletedStep, blocks_by_tenant: dict[str, int]) -> StepObserved:
    rows = [
        ObservedRow(
            tenant_id=chunk.request.tenant_id,
            request_id=chunk.request.request_id,
            start=chunk.start,
            num_tokens=len(chunk.token_ids),
            samples=chunk.samples,
        )
        for chunk in completed.plan.chunks
    ]
    step_ms = round(completed.seconds * 1000, 3)
    return StepObserved(
        step=completed.plan.step, rows=rows, blocks_by_tenant=blocks_by_tenant, step_ms=step_ms
    )
