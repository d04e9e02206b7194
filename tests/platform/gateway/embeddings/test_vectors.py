"""Vectors cut short and shown."""

import base64
import json
import math
import struct

from gateway.embeddings.vectors import shortened, shown
from inference_engine.contract.events import Embedding

VECTOR = struct.pack("<4f", 0.5, -0.5, 0.5, 0.5)
OF_LENGTH_ONE = Embedding(size=4, is_normalized=True)


def test_a_whole_vector_is_left_as_it_is() -> None:
    assert shortened(VECTOR, None, OF_LENGTH_ONE) is VECTOR
    assert shortened(VECTOR, 4, OF_LENGTH_ONE) is VECTOR


def test_what_is_cut_off_has_length_one_where_the_whole_has() -> None:
    root = math.sqrt(0.5)
    assert shortened(VECTOR, 2, OF_LENGTH_ONE) == struct.pack("<2f", root, -root)
    assert shortened(VECTOR, 2, Embedding(size=4)) == VECTOR[:8]
    assert shortened(bytes(16), 2, OF_LENGTH_ONE) == bytes(8)


def test_both_forms_are_exact() -> None:
    assert json.loads(shown(VECTOR, is_base64=False)) == [0.5, -0.5, 0.5, 0.5]
    assert base64.b64decode(json.loads(shown(VECTOR, is_base64=True))) == VECTOR
