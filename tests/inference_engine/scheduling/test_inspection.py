def test_stats_of_an_idle_scheduler(engine):
    stats = engine().scheduler.stats()
    assert (stats.blocks_total, stats.blocks_free, stats.num_waiting, stats.num_running) == (64, 64, 0, 0)


def test_stats_add_up_while_things_run(engine):
    small = engine(max_running=2, max_step_tokens=32)
    small.add("long", 90)
    small.add("short", 4)
    small.add("waiting", 10, tenant_id="bob")
    small.step()
    stats = small.scheduler.stats()
    assert (stats.num_waiting, stats.num_running) == (1, 2)
    long = small.scheduler.requests["long"]
    assert stats.waiting_tokens == (90 - long.num_computed) + 10
    places = (stats.blocks_free, stats.blocks_cached, stats.blocks_referenced, stats.blocks_quarantined)
    assert sum(places) == stats.blocks_total
    assert (stats.prompt_tokens, stats.output_tokens, stats.num_accepted, stats.num_steps) == (104, 1, 3, 1)


def test_counters_only_rise_and_end_with_the_requests(engine):
    small = engine()
    for name in "abc":
        small.add(name, max_tokens=2)
    for _ in range(2):
        small.step()
    stats = small.scheduler.stats()
    assert (stats.num_finished, stats.output_tokens, stats.num_running) == (3, 6, 0)


def test_blocks_by_tenant_counts_what_live_requests_refer_to(engine):
    small = engine()
    small.add("a", 40)
    small.add("b", 20, tenant_id="bob", max_tokens=1)
    plan = small.plan()
    assert small.scheduler.blocks_by_tenant() == {"alice": 3, "bob": 2}
    small.apply(plan)
    assert small.scheduler.blocks_by_tenant() == {"alice": 3}
