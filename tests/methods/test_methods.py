"""Every method with two halves has its row, which hides no other."""

from bfl_tf import clients, methods, server


def test_a_part_brings_its_stage_and_takes_nobodys_place():
  for method in methods.METHODS:
    assert methods.PARTS[method.part.name] is method.part
    assert methods.STAGES[method.part.needs] is method.stage
  rows = len(methods.METHODS)
  assert len(methods.PARTS) == len(clients.PARTS) + rows
  assert len(methods.STAGES) == len(server.STAGES) + rows
