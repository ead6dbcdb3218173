"""`make test-portable` ends with the status of its tests."""

import sys

import pytest

from tests import portable


@pytest.mark.parametrize(("passes", "status"), [(True, None), (False, "SSE: tests failed")])
def test_the_status_is_that_of_the_tests(passes, status, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["portable", "--only", "SSE"])
    monkeypatch.setattr(portable, "describe", lambda *_: {"q*": portable.np.ones(2)})
    monkeypatch.setattr(portable, "tested", lambda *_: passes)
    with pytest.raises(SystemExit) as end:
        portable.main()
    assert end.value.code == status
