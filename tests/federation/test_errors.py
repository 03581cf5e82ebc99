"""Tests that components and settings that do not fit together are rejected.

A row has the text that the error must contain, and the flags of the experiment.
A word without a value is a set of flags.
"""

import of_papers
import pytest
import toys

SETS = {
  'admm': 'client_optimizer=ivon client_parts=bayes_admm '
          'weighting=equal',
  'central': 'privacy=central',
  'distil': 'server_parts=distil num_server_examples=60 distil.epochs=5 '
            'distil.batch_size=12 distil.swa_start=4 distil.swa_cycle=5 '
            'ensemble.num_samples=3',
  'flipout': 'variant=flipout',
  'layers': 'client_parts=local_layers local_layers.layers=0/bias',
  'prior': 'variant=flipout flipout.update_prior=true',
  'pvi': 'variant=flipout client_parts=pvi',
  'students': f'distil server_parts={of_papers.STUDENTS}',
  'swag': 'client_parts=swag batch_size=150 local_epochs=5 swag.period=1 '
          'swag.rank=2',
  'thinning': f'client_parts={of_papers.THINNING} num_clients=1 partition=iid '
              'local_epochs=4 batch_size=50 client_optimizer=sgld',
}  # fmt: skip
INIT = of_papers.INDEPENDENT_INIT
TABLE = f"""
local_epochs | constant.min_epochs=3 local_epochs=2
clients_per_round | clients_per_round=7
min_clients | min_clients=7
min_clients | min_clients=4 clients_per_round=3
server_fraction | server_fraction=0.1 num_server_examples=9
seed | seed=2147483648
server_parts name a component twice | server_parts=momentum,momentum
client_parts name a component twice | client_parts=proximal,proximal
--start: momentum needs the updates | start=momentum
--start | distil start=distil
weighting=equal | client_parts=langevin clients_per_round=2
fedpa.samples | client_parts=fedpa local_steps=49
--variant | client_optimizer=ivon batch_size=150 flipout
ivon and --client_parts=swag | client_optimizer=ivon client_parts=swag
multi_krum | pooling=multi_krum multi_krum.bad=0.4 num_clients=5
multi_krum | pooling=multi_krum multi_krum.bad=0.4 clients_per_round=3
--flipout.kl_reduction= | prior flipout.kl_reduction=tied
--flipout.max_scale= | prior flipout.max_scale=0.01
--flipout.kl_examples= | prior flipout.kl_examples=all pooling=dwc
--flipout.temperature= | prior flipout.temperature=0.1 pooling=dwc
matches none | layers local_layers.layers=0/nothing
matches all | layers local_layers.layers=.*
local_layers | layers client_parts=scaffold,local_layers
swag.rank=1 | swag swag.rank=1
swag.rank=20 | swag swag.fits_scale=false swag.rank=20 swag.period=250
collects 1 | swag swag.rank=0 swag.period=3
collects 5 | swag swag.rank=6
--variant | swag flipout
--product | swag pooling=product product.max_memory=1e-9
burn_in | thinning thinning.burn_in=12
num_samples | thinning thinning.every=3 thinning.num_samples=4
bayes_admm | admm client_optimizer=sgd
bayes_admm | admm weighting=size
bayes_admm | admm pooling=nwa
bayes_admm | admm clients_per_round=4
bayes_admm | admm bayes_admm.damping=2
bayes_admm | admm ivon.kl_examples=all
fedlap | client_parts=fedlap flipout
fedlap | client_parts=fedlap client_optimizer=laplace
fedlap | client_parts=fednova,fedlap
feddyn | client_parts=feddyn pooling=median
feddyn | client_parts=feddyn,fednova
fednova | client_parts=fednova client_optimizer=adam
fednova | client_parts=fednova pooling=median
fednova | client_parts={INIT},fednova
swag | swag client_parts=fednova,swag
pvi | pvi pooling=nwa
pvi | pvi swag client_parts=pvi,swag swag.fits_scale=false swag.rank=0
pvi | pvi pvi.damping=1.5
scaffold | client_parts=scaffold client_optimizer=adam
scaffold | client_parts=scaffold scaffold.corrects=weights client_optimizer=adam
scaffold | client_parts=scaffold sgd.momentum=0.9
scaffold | client_parts=scaffold weighting=distance
scaffold | client_parts={INIT},scaffold
scaffold | swag client_parts=swag,scaffold
num_server_examples | distil num_server_examples=0
distil.teachers | distil distil.teachers=
distil.teachers=A+X | distil distil.teachers=A+X
distil.teachers=C | distil ensemble.groups=A distil.teachers=C
ensemble.groups=A,A | distil ensemble.groups=A,A
ensemble.num_samples | distil ensemble.num_samples=0
pooled | distil ensemble.posterior=pooled
distil.swa_start | distil distil.swa_start=99
distil.swa_cycle | distil distil.swa_cycle=2.5
distil.swa_min_learning_rate | distil distil.swa_min_learning_rate=0.1
predictor=A+B | distil predictor=A+B
predictor=A | num_server_examples=60 predictor=A
num_unlabeled_examples | distil num_unlabeled_examples=61
fits_beta | distil ensemble.fits_beta=true
students.students | students
students.students=A | students students.students=A:adam
students.students | students students.students=A:sgd,A:sgd
threshold | server_parts={of_papers.SIGN_THRESHOLD} sign_threshold.threshold=7
--pooling=lp | central flipout pooling=lp
--pooling=median | central pooling=median
kl_examples | central flipout flipout.kl_examples=all
--weighting | central weighting=size
scaffold | central client_parts=scaffold
sign_threshold | central server_parts={of_papers.SIGN_THRESHOLD}
ensemble | central server_parts=ensemble
counter | central client_parts=toys:Counter
feddyn | central client_parts=feddyn
--checkpoint_every | central checkpoint_every=2
--central.delta | central central.delta=1e-300
--central.delta | central central.delta=0.5
swag | central client_parts=swag swag.rank=2
--client_parts=swag | central method=swag
privacy=central | central model=toys:normalized
--central.epsilon=0.01 | central central.epsilon=0.01
"""


def flags_of(words):
  flags = {}
  for word in words.split():
    name, is_flag, value = word.partition('=')
    flags |= {name: value} if is_flag else flags_of(SETS[name])
  return flags


@pytest.mark.parametrize('row', TABLE.strip().splitlines())
def test_flags_that_do_not_fit_are_rejected(row):
  named, _, words = row.partition(' | ')
  with pytest.raises(ValueError) as error:
    # A budget of zero rounds is found by the number of rounds.
    assert toys.experiment(**flags_of(words)).config.final_round
  assert named in str(error.value)
