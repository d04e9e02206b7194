import random

from inference_engine.scheduling.lanes import ArrivalLane, Lanes, by_arrival, of_tenant


def test_a_lane_is_in_order_of_arrival_whatever_comes_back(request_of):
    lane = ArrivalLane("alice")
    first, second, third = (request_of(arrival) for arrival in range(3))
    for request in (first, second, third):
        lane.push(request)
    lane.remove(first)
    assert lane.head() is second
    lane.push(first)
    assert lane.head() is first and len(lane) == 3
    lane.remove(second)
    lane.remove(first)
    assert lane.head() is third and set(lane) == {third}
    lane.remove(third)
    assert lane.head() is None


def test_the_lane_with_the_lowest_order_is_first_even_once_orders_have_risen(request_of):
    orders = {"a": 1.0, "b": 2.0}
    lanes = Lanes(of_tenant, lambda lane: (orders[lane.name],))
    of_a, of_b = request_of(1, tenant_id="a"), request_of(2, tenant_id="b")
    lanes.push(of_a)
    lanes.push(of_b)
    assert lanes.head() is of_a
    orders["a"] = 3.0
    assert lanes.head() is of_b and lanes.lowest_order() == (2.0,)
    orders["b"] = 4.0
    assert lanes.head() is of_a


def test_a_push_that_brings_an_order_down_is_seen_at_once(request_of):
    lanes = Lanes(of_tenant, by_arrival)
    old, other, new = request_of(1), request_of(2, tenant_id="bob"), request_of(3)
    lanes.push(new)
    lanes.push(other)
    assert lanes.head() is other
    lanes.push(old)
    assert lanes.head() is old


def test_names_can_be_passed_over_and_stay(request_of):
    lanes = Lanes(of_tenant, by_arrival)
    requests = [request_of(n, tenant_id=name) for n, name in enumerate(("a", "b", "a", "c"))]
    for request in requests:
        lanes.push(request)
    assert lanes.head({"a"}) is requests[1]
    assert lanes.head({"a", "b"}) is requests[3]
    assert lanes.head({"a", "b", "c"}) is None
    assert lanes.head() is requests[0]


def test_an_empty_lane_is_gone_and_may_come_back(request_of):
    lanes = Lanes(of_tenant, by_arrival)
    request = request_of(1)
    for _ in range(2):
        lanes.push(request)
        assert "alice" in lanes and lanes.get("alice") is not None
        lanes.remove(request)
        assert "alice" not in lanes and lanes.head() is None and len(lanes) == 0


def test_random_pushes_removals_and_rising_orders_against_a_plain_search(request_of):
    draw = random.Random(1)
    served = dict.fromkeys("abcdef", 0)
    lanes = Lanes(of_tenant, lambda lane: (served[lane.name],))
    waiting = {}
    for arrival in range(3_000):
        if draw.random() < 0.5 or not waiting:
            waiting[arrival] = request_of(arrival, 1, tenant_id=draw.choice("abcdef"))
            lanes.push(waiting[arrival])
        else:
            lanes.remove(waiting.pop(draw.choice(list(waiting))))
        served[draw.choice("abcdef")] += draw.randrange(3)
        but = set(draw.sample("abcdef", draw.randrange(3)))
        left = [request for request in waiting.values() if request.tenant_id not in but]
        head = lanes.head(but)
        if not left:
            assert head is None
            continue
        lowest = min(served[request.tenant_id] for request in left)
        assert served[head.tenant_id] == lowest
        assert head.arrival == min(r.arrival for r in left if r.tenant_id == head.tenant_id)
        assert len(lanes) == len(waiting)


def test_entries_that_count_no_more_do_not_pile_up_behind_a_head_that_stays(request_of):
    """Whoever is given up before its turn never comes to the top."""
    lanes = Lanes(of_tenant, by_arrival)
    lanes.push(request_of(1, tenant_id="first"))
    for arrival in range(2, 1_000):
        late, later = request_of(arrival, tenant_id="late"), request_of(-arrival, tenant_id="first")
        lanes.push(late)
        lanes.remove(late)
        lanes.push(later)
        lanes.remove(later)
    assert lanes.head().arrival == 1
    assert len(lanes._heap) <= 3 and len(lanes.get("first")._heap) <= 3
