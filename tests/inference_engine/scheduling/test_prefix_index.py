import hashlib
import hmac

from inference_engine.scheduling.prefix_index import PrefixIndex, block_hash, tenant_salt
from inference_engine.scheduling.request import Request


def make_request(generate, prompt_ids: list[int], tenant_id: str = "alice") -> Request:
    message = generate("r", prompt_ids, tenant_id=tenant_id)
    return Request(message, arrival=1, max_tokens=1, end_ids=frozenset())


def test_a_hash_has_256_bits_and_covers_parent_and_tokens():
    digest = block_hash(b"parent", [1, 2])
    assert len(digest) == 32
    others = [block_hash(b"other", [1, 2]), block_hash(b"parent", [2, 1]), block_hash(b"parent", [1, 2, 0])]
    assert digest not in others


def test_the_salt_is_the_tenants_under_the_engines_secret():
    assert tenant_salt(b"secret", "alice") == hmac.new(b"secret", b"alice", hashlib.sha256).digest()


def test_equal_blocks_after_different_prefixes_are_not_the_same(generate):
    index = PrefixIndex(b"secret")
    request = make_request(generate, [1] * 16 + [5] * 16)
    request.block_table = [0, 1]
    index.publish(request, 0, 1)
    index.publish(request, 1, 2)
    assert index.match(make_request(generate, [1] * 16 + [5] * 16), 0, 2) == [0, 1]
    assert index.match(make_request(generate, [2] * 16 + [5] * 16), 0, 2) == []


def test_another_tenant_finds_nothing(generate):
    index = PrefixIndex(b"secret")
    request = make_request(generate, [1] * 16)
    request.block_table = [0]
    index.publish(request, 0, 1)
    assert index.match(make_request(generate, [1] * 16, "bob"), 0, 1) == []


def test_of_two_blocks_with_the_same_content_the_first_keeps_the_name(generate):
    index = PrefixIndex(b"secret")
    for block in (3, 4):
        request = make_request(generate, [1] * 16)
        request.block_table = [block]
        index.publish(request, 0, 1)
    assert index.match(request, 0, 1) == [3]
    assert 4 not in index
    index.forget(4)
    index.forget(3)
    assert index.match(request, 0, 1) == [] and len(index) == 0


def test_a_match_stops_at_the_first_gap(generate):
    index = PrefixIndex(b"secret")
    request = make_request(generate, list(range(48)))
    request.block_table = [7, 8, 9]
    for position in (0, 2):
        index.publish(request, position, position + 1)
    assert index.match(request, 0, 3) == [7]
