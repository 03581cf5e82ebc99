"""The client's side as Flower's ClientApp.

Of a SuperNode's --node-config `partition-id` is the client's number, `data` the
file that it trains on in place of --dataset (`label-column`, `ignore-columns`:
how it is read; `test-fraction`, `calibration-fraction`: what it holds out),
`memory` where a client's own memory is kept.
"""

from typing import Any

from flwr import app as flwr_app
from flwr import clientapp

from bfl_tf.flower import introductions, messages, questions, sites

app = clientapp.ClientApp()


@app.query()
def query(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Says which client this node is, and sums of the examples of its own."""
  said: dict[str, Any] = {'client': _number(context), 'introduction': ''}
  own = sites.Own.of(context.node_config)
  if own.data:
    flags = messages.unpack_greeting(message.content)
    _, dataset = sites.read(flags, own)
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
  # In a simulation any node plays any client.
  if order.memory is None:
    _check_asked(context, order.client)
  elif {'memory', 'data'} & set(node):
    raise ValueError('what a client of this node remembers stays on it')
  site = sites.of(order.flags, sites.Own.of(node), order.told)
  update, memory = site.train(order, str(node.get('memory', '')))
  return flwr_app.Message(
    messages.pack_update(update, memory), reply_to=message
  )


@app.evaluate()
def evaluate(
  message: flwr_app.Message, context: flwr_app.Context
) -> flwr_app.Message:
  """Says what the examples add up to that this node's file holds out."""
  question, model = questions.read(message.content)
  _check_asked(context, question.client)
  said = questions.answer(question, model, sites.Own.of(context.node_config))
  content = flwr_app.RecordDict({'arrays': messages.pack(said)})
  return flwr_app.Message(content, reply_to=message)


def _check_asked(context, client):
  """Its owner may have given it another number since it said who it is."""
  if client != _number(context):
    raise ValueError(
      f'it is client {_number(context)} now and was asked for {client}'
    )


def _number(context) -> int:
  return int(context.node_config.get('partition-id', -1))
