"""A custom Flower App with Bayesian pooling in place of FedAvg.

flwr run experiments/flower_example
"""

import functools

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from sklearn import datasets
import tensorflow_probability as tfp
import tf_keras

from bfl_tf.flower import BayesianStrategy

client_app = ClientApp()
server_app = ServerApp()


def build():
  """Returns a network of TFP's own Flipout layers."""
  dense = functools.partial(
    tfp.layers.DenseFlipout,
    kernel_divergence_fn=lambda q, p, _: q.kl_divergence(p) / 1797,
  )
  layers = [tf_keras.Input([64]), dense(32, activation='relu'), dense(10)]
  model = tf_keras.Sequential(layers)
  loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile('adam', loss, metrics=['accuracy'])
  return model


@client_app.train()
def train(message, context):
  """Fits the model on this node's share, as with FedAvg."""
  node = context.node_config['partition-id']
  x, y = (a[node::4] for a in datasets.load_digits(return_X_y=True))
  model = build()
  model.set_weights(message.content['arrays'].to_numpy_ndarrays())
  model.fit(x / 16, y, epochs=5, verbose=0)
  arrays = ArrayRecord(model.get_weights())
  content = {
    'arrays': arrays,
    'metrics': MetricRecord({'num-examples': len(y)}),
  }
  return Message(RecordDict(content), reply_to=message)


@server_app.main()
def main(grid, context):
  """Pools the posteriors by conflation and prints the pooled accuracy."""
  model = build()
  strategy = BayesianStrategy(model, rule='conflation', fraction_evaluate=0.0)
  result = strategy.start(grid, ArrayRecord(model.get_weights()), num_rounds=2)
  model.set_weights(result.arrays.to_numpy_ndarrays())
  x, y = datasets.load_digits(return_X_y=True)
  print(f'accuracy {model.evaluate(x / 16, y, verbose=0)[1]:.3f}')
