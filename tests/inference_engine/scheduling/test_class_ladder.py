import random

import pytest

from inference_engine.contract.requests import ServiceClass
from inference_engine.scheduling.class_ladder import ClassLadder, bulk_gives_way
from inference_engine.scheduling.lanes import Lanes, by_arrival, of_tenant

CHAT, STANDARD, BULK = ServiceClass


@pytest.fixture
def ladder():
    return ClassLadder(lambda: Lanes(of_tenant, by_arrival), ageing_tokens=100)


def test_the_most_urgent_class_goes_first_though_it_came_last(ladder, request_of):
    requests = [request_of(n, service_class=each) for n, each in enumerate((BULK, STANDARD, CHAT))]
    for request in requests:
        ladder.push(request)
    order = []
    while (head := ladder.head()) is not None:
        ladder.remove(head)
        order.append(head)
    assert order == requests[::-1]


@pytest.mark.parametrize(("clock", "is_first"), [(199, False), (200, True)])
def test_two_windows_of_service_make_bulk_as_urgent_as_a_new_chat(ladder, request_of, clock, is_first):
    old = request_of(1, service_class=BULK)
    ladder.push(old)
    ladder.clock = clock + 0.5
    ladder.push(request_of(2, service_class=CHAT))
    assert (ladder.head() is old) is is_first


def test_a_request_that_comes_back_keeps_its_age(ladder, request_of):
    old = request_of(1, service_class=BULK)
    ladder.push(old)
    ladder.remove(old)
    ladder.clock = 250
    ladder.push(old)
    ladder.push(request_of(2, service_class=CHAT))
    assert ladder.head() is old


def test_of_a_backlog_of_old_bulk_only_one_goes_before_fresh_chats(ladder, request_of):
    for arrival in range(50):
        ladder.push(request_of(arrival, service_class=BULK))
    ladder.clock = 1_000
    for arrival in range(50, 60):
        ladder.push(request_of(arrival, service_class=CHAT))
    ranks = []
    for _ in range(11):
        head = ladder.head()
        ladder.remove(head)
        ladder.start(head)
        ranks.append(head.service_class)
    assert ranks == [BULK] + [CHAT] * 10
    assert head.is_let_in_by_age is False


@pytest.mark.parametrize("seed", range(20))
def test_the_head_has_the_lowest_key_of_all_though_not_every_class_is_looked_at(ladder, request_of, seed):
    draw = random.Random(seed)
    for arrival in range(120):
        ladder.push(request_of(arrival, service_class=draw.choice(list(ServiceClass))))
        ladder.clock += draw.choice((0, 7, 60))
        if draw.random() < 0.6:
            head = ladder.head()
            assert ladder._key(head) == min(map(ladder._key, ladder))
            ladder.remove(head)
            ladder.start(head)


def test_bulk_gives_way_to_what_is_more_urgent_unless_its_age_let_it_in(request_of):
    bulk, standard, chat = (
        request_of(n, service_class=each) for n, each in enumerate((BULK, STANDARD, CHAT))
    )
    assert bulk_gives_way(bulk, chat) and bulk_gives_way(bulk, standard)
    assert not bulk_gives_way(standard, chat) and not bulk_gives_way(bulk, bulk)
    bulk.is_let_in_by_age = True
    assert not bulk_gives_way(bulk, chat)
