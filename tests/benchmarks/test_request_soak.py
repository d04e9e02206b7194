"""What is left of requests once they are gone: the long soak's own code, at a fiftieth of its length."""

from benchmarks.container_sizes import container_sizes
from benchmarks.request_soak import soak
from inference_engine.scheduling.lanes import ArrivalLane, Lanes, of_tenant


def test_two_thousand_requests_of_every_fate_leave_nothing() -> None:
    told = soak(2_000)
    assert told["left"] == {}
    assert set(told["endings"]) >= {
        "finished",
        "queue_full",
        "deadline_exceeded",
        "client_gone",
        "left behind",
    }


def test_a_map_that_keeps_its_requests_is_found_out(monkeypatch) -> None:
    monkeypatch.setattr(
        "inference_engine.scheduling.drafting.drafter.Drafter.leave", lambda self, request: None
    )
    assert soak(1_000)["left"] != {}


def test_sizes_are_told_by_path_through_slots_and_containers() -> None:
    lanes = Lanes(of_tenant, lambda lane: (0,))
    lane = lanes._lanes["alice"] = ArrivalLane("alice")
    lane._waiting[1] = object()
    sizes = container_sizes(lanes)
    assert sizes["Lanes._lanes"] == 1 and sizes["Lanes._lanes[]._waiting"] == 1
