"""The JSON-Schema-Test-Suite, a part of it on every run: the mask alone makes each finished value valid.

All of it: `python -m schema_suite MODEL_DIR [VALUES]` with `tests` on the path.
"""

import pytest

from inference_engine.constraints.vocabulary import Vocabulary
from random_model import RandomModel
from requirements_of_tests import require
from schema_suite import SUITE, Report, run_suite, suite_schemas

EVERY = 3
VALUES = 2


@pytest.fixture(scope="module")
def report(smollm2_vocabulary: Vocabulary) -> Report:
    require(SUITE.is_dir(), "the JSON-Schema-Test-Suite is not here")
    return run_suite(smollm2_vocabulary, list(suite_schemas())[::EVERY], VALUES, seed=5)


def test_no_finished_value_and_no_accepted_instance_is_invalid(report: Report) -> None:
    assert report.faults == []


def test_the_run_has_something_to_show(report: Report) -> None:
    """Schemas were served, values finished, invalid instances refused, and most valid ones accepted."""
    assert report.num_compiled > report.num_schemas * 0.4
    assert report.num_finished > report.num_written * 0.8
    assert report.num_invalid_refused > 200
    assert report.num_valid_accepted > report.num_valid * 0.8


def test_the_judge_sees_what_no_mask_held_back(smollm2_vocabulary: Vocabulary) -> None:
    """The same random model held to another schema writes values that are invalid."""
    from inference_engine.constraints.errors import ConstraintError
    from schema_suite import fault_of, schema_matcher

    with pytest.raises(ConstraintError):
        schema_matcher({"not": {}}, smollm2_vocabulary)
    matcher = schema_matcher({"type": "string"}, smollm2_vocabulary)
    written = RandomModel(smollm2_vocabulary, 1).write(matcher, 300)
    assert written.has_ended
    assert fault_of({"type": "string"}, written.text) == ""
    assert fault_of({"type": "integer"}, written.text) != ""
