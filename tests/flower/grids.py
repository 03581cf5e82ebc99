"""A grid of Flower without processes, which calls client apps directly."""

from flwr import app

from bfl_tf.flower import client_side


class Grid:
  """A grid that calls the client app for each message that is pushed.

  Attributes:
    node_configs: Value of --node-config, by node.
    change: Function that replaces a reply to a training message; None drops
      the reply.
    answer: Function that replaces a reply to other messages.
    most_out: Maximum number of simultaneous training messages.
  """

  def __init__(self, node_configs, change=lambda reply: reply):
    self.node_configs = node_configs
    self.change = change
    self.answer = lambda reply: reply
    self.most_out = 0
    self._waiting = {}
    self._count = 0

  def get_node_ids(self):
    return list(self.node_configs)

  def push_messages(self, messages):
    numbers = []
    for message in messages:
      self._count += 1
      numbers.append(f'message-{self._count}')
      self._waiting[numbers[-1]] = self._state(message)
      if messages[-1].metadata.message_type == 'train':
        self.most_out = max(self.most_out, len(self._waiting))
    return numbers

  def pull_messages(self, message_ids):
    (number,) = message_ids
    if self._waiting.get(number) is None:
      return []
    return [self._waiting.pop(number)]

  def _state(self, message):
    node = message.metadata.dst_node_id
    message.metadata.__dict__['_message_id'] = 'message'
    config = self.node_configs[node]
    context = app.Context(1, node, config, app.RecordDict(), {})
    try:
      reply = client_side.app(message, context)
    except Exception as error:
      reply = app.Message(app.Error(0, str(error)), reply_to=message)
    if message.metadata.message_type == 'train':
      return self.change(reply)
    return self.answer(reply)
