from inference_engine.contract.requests import ServiceClass
from inference_engine.scheduling.fcfs import FirstComeFirstServed
from inference_engine.scheduling.request import Request


def make_request(generate, arrival: int, **fields) -> Request:
    return Request(generate(f"r{arrival}", **fields), arrival=arrival, max_tokens=1, end_ids=frozenset())


def test_requests_leave_in_the_order_of_their_arrival(generate):
    queue = FirstComeFirstServed()
    requests = [make_request(generate, arrival) for arrival in range(3)]
    for request in requests:
        queue.push(request)
    for request in requests:
        assert queue.head() is request
        queue.remove(request)
    assert queue.head() is None and len(queue) == 0


def test_one_that_comes_back_has_its_old_place(generate):
    queue = FirstComeFirstServed()
    first, second, third = (make_request(generate, arrival) for arrival in range(3))
    for request in (first, second, third):
        queue.push(request)
    queue.remove(first)
    assert queue.head() is second
    queue.push(first)
    assert queue.head() is first
    assert set(queue) == {first, second, third}


def test_one_that_gave_up_in_the_middle_is_skipped(generate):
    queue = FirstComeFirstServed()
    first, second, third = (make_request(generate, arrival) for arrival in range(3))
    for request in (first, second, third):
        queue.push(request)
    queue.remove(second)
    queue.remove(first)
    assert queue.head() is third and len(queue) == 1


def test_a_lower_class_gives_way_first_and_then_the_newest(generate):
    rank = FirstComeFirstServed().rank
    old_bulk = make_request(generate, 1, service_class=ServiceClass.BULK)
    old, new = make_request(generate, 2), make_request(generate, 3)
    interactive = make_request(generate, 4, service_class=ServiceClass.INTERACTIVE)
    assert sorted([old_bulk, new, interactive, old], key=rank) == [interactive, old, new, old_bulk]
