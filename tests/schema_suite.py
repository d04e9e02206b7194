"""The JSON-Schema-Test-Suite against our constraints; the whole of it: `python -m schema_suite` in tests/.

For every schema that is not refused: the random model writes values, and each that it finished must validate;
each of the suite's own instances that is invalid must be refused by the matcher, too. The last line printed
is one JSON object.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from inference_engine.constraints.building import build
from inference_engine.constraints.errors import ConstraintError
from inference_engine.constraints.grammars import grammar_of
from inference_engine.constraints.matcher import Matcher
from inference_engine.constraints.vocabulary import Vocabulary
from inference_engine.contract.requests import Constraint, ConstraintKind
from random_model import RandomModel

SUITE = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "json_schema_test_suite" / "tests"
DIALECTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
MAX_TOKENS = 300
_KEYWORD = re.compile(r"(?:JSON schema: '([^']+)'|(pattern) )")


@dataclass(frozen=True, slots=True)
class SuiteSchema:
    place: str
    schema: Any
    cases: list[dict[str, Any]]


@dataclass(slots=True)
class Report:
    num_schemas: int = 0
    num_compiled: int = 0
    num_written: int = 0
    num_finished: int = 0
    num_invalid_refused: int = 0
    num_valid: int = 0
    num_valid_accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        return {
            "schemas": self.num_schemas,
            "compiled": self.num_compiled,
            "written": self.num_written,
            "finished": self.num_finished,
            "invalid_instances_refused": self.num_invalid_refused,
            "valid_instances": self.num_valid,
            "valid_instances_accepted": self.num_valid_accepted,
            "refused": dict(self.refused.most_common()),
            "faults": len(self.faults),
        }


def suite_schemas() -> Iterator[SuiteSchema]:
    for draft, dialect in DIALECTS.items():
        for path in sorted((SUITE / draft).rglob("*.json")):
            for index, group in enumerate(json.loads(path.read_text())):
                schema = group["schema"]
                if isinstance(schema, dict):
                    schema = {"$schema": dialect, **schema}
                yield SuiteSchema(f"{draft}/{path.stem}[{index}]", schema, group["tests"])


def run_suite(vocabulary: Vocabulary, schemas: list[SuiteSchema], num_values: int, seed: int) -> Report:
    report = Report()
    model = RandomModel(vocabulary, seed)
    for suite_schema in schemas:
        report.num_schemas += 1
        try:
            matcher = schema_matcher(suite_schema.schema, vocabulary)
        except ConstraintError as error:
            report.refused[reason_of(error)] += 1
            continue
        report.num_compiled += 1
        _check_cases(report, suite_schema, vocabulary)
        for _ in range(num_values):
            _check_value(report, suite_schema, model, matcher)
    return report


def schema_matcher(schema: Any, vocabulary: Vocabulary) -> Matcher:
    constraint = Constraint(kind=ConstraintKind.JSON_SCHEMA, source=json.dumps(schema))
    return Matcher(build(grammar_of(constraint, vocabulary), vocabulary.tokenizer), vocabulary)


def reason_of(error: ConstraintError) -> str:
    """The keyword named, or the first words of the message."""
    found = _KEYWORD.search(error.message)
    return found[1] or found[2] if found else error.message.removeprefix("the constraint can't be compiled: ")


def accepts(matcher: Matcher, token_ids: list[int]) -> bool:
    """Whether these tokens are a whole value; the matcher is left as it was."""
    before = matcher.num_consumed
    try:
        for token_id in token_ids:
            matcher.advance(token_id)
        return matcher.is_accepting
    except ConstraintError:
        return False
    finally:
        matcher.roll_back(matcher.num_consumed - before)


def _check_cases(report: Report, suite_schema: SuiteSchema, vocabulary: Vocabulary) -> None:
    matcher = schema_matcher(suite_schema.schema, vocabulary)
    for case in suite_schema.cases:
        text = json.dumps(case["data"], ensure_ascii=False)
        is_accepted = accepts(matcher, vocabulary.tokenizer.tokenize_str(text))
        if case["valid"]:
            report.num_valid += 1
            report.num_valid_accepted += is_accepted
        elif is_accepted:
            report.faults.append(f"{suite_schema.place}: accepts {text} ({case['description']})")
        else:
            report.num_invalid_refused += 1


def _check_value(report: Report, suite_schema: SuiteSchema, model: RandomModel, matcher: Matcher) -> None:
    report.num_written += 1
    try:
        written = model.write(matcher, MAX_TOKENS)
    except ConstraintError as error:
        report.faults.append(f"{suite_schema.place}: {error.message}")
        return
    finally:
        matcher.roll_back(matcher.num_consumed)
    if written.has_ended:
        report.num_finished += 1
        fault = fault_of(suite_schema.schema, written.text)
        if fault:
            report.faults.append(f"{suite_schema.place}: wrote {written.text[:200]!r}: {fault}")


def fault_of(schema: Any, text: str) -> str:
    """Why the text is no valid value of the schema; "" if it is one."""
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return str(error).partition("\n")[0][:200]
    return ""


def main(model_dir: str, num_values: int) -> int:
    from inference_engine.constraints.vocabulary import load_vocabulary
    from inference_engine.execution.models.model_files import load_model_files

    files = load_model_files(Path(model_dir))
    vocabulary = load_vocabulary(files.tokenizer_json, vocab_size=files.vocab_size, end_ids=files.end_ids)
    report = run_suite(vocabulary, list(suite_schemas()), num_values, seed=1)
    print(*report.faults, sep="\n")
    print(json.dumps(report.summary()))
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20))
