from pathlib import Path

import pytest

from stand_ins.tiny_text import SHARED_DATA, description_of_files
from text.model_text import ModelText


@pytest.fixture(scope="session")
def smollm2_text(smollm2_dir: Path) -> ModelText:
    return ModelText.from_description(description_of_files(smollm2_dir))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not here")
    return SHARED_DATA
