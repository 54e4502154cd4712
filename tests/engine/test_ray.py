"""The Ray engine on a Ray of two cores: the same rows, and what happens when its workers die."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from fault_stages import Shout

from creperie.core.errors import DataError
from creperie.engine import Held, choose_engine, gather

pytestmark = pytest.mark.slow
RAY = choose_engine("ray", workers=2)


@pytest.mark.usefixtures("small_ray")
def test_ray_returns_the_same_rows_and_opens_a_stage_once_a_worker(captions: pa.Table, tmp_path: Path) -> None:
    assert gather(Shout(marks=str(tmp_path)), Held(captions, 5), engine=RAY) == gather(Shout(), captions)
    assert 1 <= len(list(tmp_path.glob("opened-*"))) <= 2
    assert len(list(tmp_path.glob("done-*"))) == 10


@pytest.mark.usefixtures("small_ray")
def test_a_killed_ray_worker_is_replaced(captions: pa.Table, tmp_path: Path) -> None:
    stage = Shout(marks=str(tmp_path), dies_at="23")
    assert gather(stage, Held(captions, 5), engine=RAY) == gather(Shout(), captions)
    assert (tmp_path / "died").exists()


@pytest.mark.usefixtures("small_ray")
def test_bad_data_is_told_in_one_line(captions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="caption 49: this caption cannot be shouted; whisper it"):
        gather(Shout(bad_at="49"), Held(captions, 5), engine=RAY)
    with pytest.raises(DataError, match="no model here"):
        gather(Shout(marks=str(tmp_path / "nowhere")), Held(captions, 5), engine=RAY)
