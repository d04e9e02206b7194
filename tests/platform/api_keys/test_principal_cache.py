"""What a process remembers of keys: bounded, and forgotten whole."""

from dataclasses import replace

from api_keys.principal import Principal
from api_keys.principal_cache import CachedKey, PrincipalCache
from api_keys.secrets_format import KnownSecret
from inference_engine.contract.requests import ServiceClass

PLAIN = Principal("1", "t", "k", "key", ServiceClass.STANDARD, 1.0, False, 1)


def cached(generation: int = 0) -> CachedKey:
    return CachedKey(KnownSecret(b"digest"), replace(PLAIN, generation=generation))


def test_the_least_recently_used_goes_first() -> None:
    cache = PrincipalCache(max_known=2)
    cache.put("a", cached())
    cache.put("b", cached())
    assert cache.get("a")
    cache.put("c", cached())
    assert [cache.get(name) is not None for name in "abc"] == [True, False, True]


def test_unknown_ids_are_known_as_such_for_a_moment_only() -> None:
    cache = PrincipalCache(max_unknown=2)
    cache.put_unknown("a", until=10.0)
    assert cache.is_unknown("a", now=9.9)
    assert not cache.is_unknown("a", now=10.0)
    for name in "bcd":
        cache.put_unknown(name, until=10.0)
    assert [cache.is_unknown(name, now=1.0) for name in "bcd"] == [False, True, True]


def test_a_load_that_began_before_everything_was_forgotten_is_not_kept() -> None:
    cache = PrincipalCache()
    cache.put("a", cached())
    cache.forget_all()
    cache.put("b", cached(generation=0))
    cache.put("c", cached(generation=1))
    assert [cache.get(name) is not None for name in "abc"] == [False, False, True]
