"""A cluster is away from its first failure on, however long we were paused before it."""

from __future__ import annotations

import time

import pytest

from rocmend.runner.remote.kubernetes import _Outage


def test_a_pause_of_ours_is_no_outage_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: at)
    outage = _Outage()
    at += 3600  # we were stopped, and the connection went meanwhile
    assert outage.lasted_s(answered=99.0) == 0
    at += 20
    assert outage.lasted_s(answered=99.0) == 20
    assert outage.lasted_s(answered=115.0) == 0  # it has answered in between
