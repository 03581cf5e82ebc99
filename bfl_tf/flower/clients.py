"""The client's side as Flower's ClientApp.

A SuperNode's --node-config may say `data="FILE"`, the examples that it trains
on in place of --dataset, and `memory="DIR"`, where a client's own memory is
kept. `partition-id` is the client's number.
"""

from typing import Any

from flwr import app as flwr_app
from flwr import clientapp

from bfl_tf.flower import introductions, messages, sites

app = clientapp.ClientApp()


@app.query()
def query(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Says which client this node is, and sums of the examples of its own."""
  node = context.node_config
  said: dict[str, Any] = {
    'client': int(node.get('partition-id', -1)),
    'introduction': '',
  }
  data = str(node.get('data', ''))
  if data:
    flags = messages.unpack_question(message.content)
    _, dataset = sites.read(flags, data)
    said['introduction'] = introductions.Introduction.of(dataset).to_json()
  record = flwr_app.ConfigRecord(said)
  return flwr_app.Message(
    flwr_app.RecordDict({'node': record}), reply_to=message
  )


@app.train()
def train(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Trains as the server's order says; what it raises is this client's."""
  node = context.node_config
  order = messages.unpack_order(message.content)
  site = sites.of(order.flags, str(node.get('data', '')), order.told)
  update, memory = site.train(order, str(node.get('memory', '')))
  return flwr_app.Message(
    messages.pack_update(update, memory), reply_to=message
  )
