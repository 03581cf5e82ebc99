"""Every method with two halves: its row, and what stands alone beside it."""

import pytest

from bfl_tf import clients, methods, server


@pytest.mark.parametrize('method', methods.METHODS, ids=lambda m: m.part.name)
def test_the_part_brings_its_stage(method):
  assert methods.PARTS[method.part.name] is method.part
  assert methods.STAGES[method.part.needs] is method.stage


def test_no_row_takes_the_place_of_another():
  rows = len(methods.METHODS)
  assert len(methods.PARTS) == len(clients.PARTS) + rows
  assert len(methods.STAGES) == len(server.STAGES) + rows
