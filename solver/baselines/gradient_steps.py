"""Gradient steps of soft actor-critic as one compiled function.

Networks are flat lists [weight, bias, weight, bias, ...] with weights (out, in), as in Torch; hidden layers are ReLU.
The last two pairs of an actor's list are the mean and the log deviation.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

#: One thread: the others belong to other runs. Only what stands here before JAX is imported counts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from solver.errors import SolverError

_state = np.random.get_state()  # importing JAX draws from this stream, which a training has seeded
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise SolverError(
        "training SAC needs JAX, which is not installed: pip install 'robust-value-iteration[baselines]'"
    ) from error
np.random.set_state(_state)

LEAST, MOST = -20.0, 2.0  # log deviation, as in Stable-Baselines3
FIRST_DECAY, SECOND_DECAY, SMALL = 0.9, 0.999, 1e-8  # of Adam

Array = Any  # of JAX or NumPy
Network = list[Array]


class Batches(NamedTuple):
    """K minibatches of B transitions; noise has draws for the B states, then for the B that follow."""

    features: Array  # (K, B, k), scaled
    following: Array  # (K, B, k)
    actions: Array  # (K, B, m)
    rewards: Array  # (K, B)
    discounts: Array  # (K, B), 0 where the task has ended
    noise: Array  # (K, 2 B, m)


class Settings(NamedTuple):
    """Numbers that may change between calls."""

    learning_rate: float
    target_entropy: float
    most: float  # no value of a state is above it
    scale: float  # an error weighs scale / (scale + |target|)
    follow: float  # share of the way to the critics that the followers go in each step


@jax.jit
def gradient_steps_on(held: dict[str, Any], batches: Batches, settings: Settings) -> tuple[dict[str, Any], Any]:
    """What is held after one step on each minibatch, and the last losses by name."""

    def step(held: dict[str, Any], batch: Batches) -> tuple[dict[str, Any], dict[str, Array]]:
        return _step(held, batch, settings)

    held, losses = jax.lax.scan(step, held, batches)
    return held, jax.tree_util.tree_map(lambda each: each[-1], losses)


def _step(held: dict[str, Any], batch: Batches, settings: Settings) -> tuple[dict[str, Any], dict[str, Array]]:
    """One gradient step of the critics, the actor and the temperature, then one of the followers."""
    old, moments = held["parameters"], held["moments"]
    size = len(batch.features)
    temperature = jnp.exp(old["temperature"][0][0])

    next_action, next_probability = _draw(old["actor"], batch.following, batch.noise[size:])
    value = _least(held["followers"], batch.following, next_action) - temperature * next_probability
    target = batch.rewards + batch.discounts * jnp.minimum(value, settings.most)
    weight = 1.0 / (1.0 + jnp.abs(target) / settings.scale)

    def critic_loss(critics: list[Network]) -> Array:
        errors = [weight * (_value(net, batch.features, batch.actions) - target) for net in critics]
        return 0.5 * sum(jnp.mean(error**2) for error in errors)

    of_critics, slope = jax.value_and_grad(critic_loss)(old["critics"])
    critics, critic_moments = _adam(old["critics"], slope, moments["critics"], settings.learning_rate)

    def actor_loss(actor: Network) -> tuple[Array, Array]:
        action, probability = _draw(actor, batch.features, batch.noise[:size])
        loss = jnp.mean(temperature * probability - _least(critics, batch.features, action))
        return loss, jnp.mean(probability)

    (of_actor, probability), slope = jax.value_and_grad(actor_loss, has_aux=True)(old["actor"])
    actor, actor_moments = _adam(old["actor"], slope, moments["actor"], settings.learning_rate)

    slope = [-(probability + settings.target_entropy)[None]]
    log_temperature, its_moments = _adam(old["temperature"], slope, moments["temperature"], settings.learning_rate)

    followers = jax.tree_util.tree_map(
        lambda follower, leader: follower + settings.follow * (leader - follower), held["followers"], critics
    )
    new = {
        "parameters": {"actor": actor, "critics": critics, "temperature": log_temperature},
        "moments": {"actor": actor_moments, "critics": critic_moments, "temperature": its_moments},
        "followers": followers,
    }
    return new, {"critic_loss": of_critics, "actor_loss": of_actor, "ent_coef": temperature}


def _hidden(layers: Network, x: Array) -> Array:
    """Features (B, k) through hidden layers."""
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        x = jax.nn.relu(x @ weight.T + bias)
    return x


def _value(net: Network, features: Array, action: Array) -> Array:
    """One critic's value (B,)."""
    hidden = _hidden(net[:-2], jnp.concatenate([features, action], 1))
    return (hidden @ net[-2].T + net[-1])[:, 0]


def _least(critics: list[Network], features: Array, action: Array) -> Array:
    """The smallest of the critics' values (B,)."""
    return jnp.min(jnp.stack([_value(net, features, action) for net in critics]), 0)


def _draw(actor: Network, features: Array, noise: Array) -> tuple[Array, Array]:
    """Actions (B, m) and their log probabilities (B,)."""
    hidden = _hidden(actor[:-4], features)
    mean, log_deviation = hidden @ actor[-4].T + actor[-3], hidden @ actor[-2].T + actor[-1]
    log_deviation = jnp.clip(log_deviation, LEAST, MOST)
    action = jnp.tanh(mean + jnp.exp(log_deviation) * noise)
    volume = jnp.log(1.0 - action**2 + 1e-6)  # of tanh
    return action, jnp.sum(-0.5 * noise**2 - log_deviation - 0.5 * math.log(2.0 * math.pi) - volume, 1)


def _adam(parameters: Any, slope: Any, moments: Any, learning_rate: Array) -> tuple[Any, Any]:
    """Parameters after one step of Adam, and their moments, in the same structure."""
    if isinstance(parameters, list):
        pairs = [_adam(*each, learning_rate) for each in zip(parameters, slope, moments, strict=True)]
        return [each for each, _ in pairs], [each for _, each in pairs]
    count, first, second = moments
    count = count + 1.0
    first = FIRST_DECAY * first + (1.0 - FIRST_DECAY) * slope
    second = SECOND_DECAY * second + (1.0 - SECOND_DECAY) * slope**2
    deviation = jnp.sqrt(second / (1.0 - SECOND_DECAY**count)) + SMALL
    return parameters - learning_rate * first / (1.0 - FIRST_DECAY**count) / deviation, [count, first, second]
