"""Gradient steps of SAC and DDPG, each as one compiled function.

Networks are flat lists [weight, bias, weight, bias, ...] with weights (out, in), as in Torch; hidden layers are ReLU.
The last two layers of SAC's actor give the mean and the logarithm of the deviation.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any, Literal, NamedTuple

#: One thread, because other runs use the other threads. JAX reads this variable when it is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from solver.errors import SolverError

_state = np.random.get_state()  # a training has seeded this stream, and importing JAX draws from it
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise SolverError(
        "training SAC or DDPG needs JAX, which is not installed: pip install 'robust-value-iteration[baselines]'"
    ) from error
np.random.set_state(_state)

LEAST, MOST = -20.0, 2.0  # bounds of the log deviation, as in Stable-Baselines3
FIRST_DECAY, SECOND_DECAY, SMALL = 0.9, 0.999, 1e-8  # of Adam

Array = Any  # of JAX or NumPy
Network = list[Array]
OffPolicyName = Literal["sac", "ddpg"]


class Batches(NamedTuple):
    """K minibatches of B transitions. `noise` has the draws for the B states, then for the B next states."""

    features: Array  # (K, B, k), scaled
    following: Array  # (K, B, k)
    actions: Array  # (K, B, m)
    rewards: Array  # (K, B)
    discounts: Array  # (K, B), 0 after the end of the task
    noise: Array  # (K, 2 B, m); (K, 0) for DDPG


class StepSettings(NamedTuple):
    """Numbers of gradient steps that may change between calls."""

    learning_rate: float
    target_entropy: float  # of SAC
    most: float  # upper bound of the values
    scale: float  # an error has the weight scale / (scale + |target|)
    follow: float  # step of the followers towards the networks, as a share of the distance


@partial(jax.jit, static_argnames="kind")
def gradient_steps_on(
    kind: OffPolicyName, held: dict[str, Any], batches: Batches, settings: StepSettings
) -> tuple[dict[str, Any], Any]:
    """Parameters, moments and followers after one step on every minibatch, and the last losses by name."""

    def step(held: dict[str, Any], batch: Batches) -> tuple[dict[str, Any], dict[str, Array]]:
        return (_step_of_sac if kind == "sac" else _step_of_ddpg)(held, batch, settings)

    held, losses = jax.lax.scan(step, held, batches)
    return held, jax.tree_util.tree_map(lambda values: values[-1], losses)


def _step_of_sac(
    held: dict[str, Any], batch: Batches, settings: StepSettings
) -> tuple[dict[str, Any], dict[str, Array]]:
    """One gradient step of the critics, the actor and the temperature, then one step of the followers."""
    old, moments = held["parameters"], held["moments"]
    size = len(batch.features)
    temperature = jnp.exp(old["temperature"][0][0])

    next_action, next_probability = _draw(old["actor"], batch.following, batch.noise[size:])
    value = _least(held["followers"]["critics"], batch.following, next_action) - temperature * next_probability
    of_critics, critics, critic_moments = _fitted(held, batch, value, settings)

    def actor_loss(actor: Network) -> tuple[Array, Array]:
        action, probability = _draw(actor, batch.features, batch.noise[:size])
        loss = jnp.mean(temperature * probability - _least(critics, batch.features, action))
        return loss, jnp.mean(probability)

    (of_actor, probability), slope = jax.value_and_grad(actor_loss, has_aux=True)(old["actor"])
    actor, actor_moments = _adam(old["actor"], slope, moments["actor"], settings.learning_rate)

    slope = [-(probability + settings.target_entropy)[None]]
    log_temperature, its_moments = _adam(old["temperature"], slope, moments["temperature"], settings.learning_rate)

    new = {
        "parameters": {"actor": actor, "critics": critics, "temperature": log_temperature},
        "moments": {"actor": actor_moments, "critics": critic_moments, "temperature": its_moments},
        "followers": _followed(held["followers"], {"critics": critics}, settings.follow),
    }
    return new, {"critic_loss": of_critics, "actor_loss": of_actor, "ent_coef": temperature}


def _step_of_ddpg(
    held: dict[str, Any], batch: Batches, settings: StepSettings
) -> tuple[dict[str, Any], dict[str, Array]]:
    """One gradient step of the critic and the actor, then one step of the followers."""
    old, moments, followers = held["parameters"], held["moments"], held["followers"]
    value = _least(followers["critics"], batch.following, _action(followers["actor"], batch.following))
    of_critics, critics, critic_moments = _fitted(held, batch, value, settings)

    def actor_loss(actor: Network) -> Array:
        return -jnp.mean(_value(critics[0], batch.features, _action(actor, batch.features)))

    of_actor, slope = jax.value_and_grad(actor_loss)(old["actor"])
    actor, actor_moments = _adam(old["actor"], slope, moments["actor"], settings.learning_rate)

    parameters = {"actor": actor, "critics": critics}
    new = {
        "parameters": parameters,
        "moments": {"actor": actor_moments, "critics": critic_moments},
        "followers": _followed(followers, parameters, settings.follow),
    }
    return new, {"critic_loss": of_critics, "actor_loss": of_actor}


def _fitted(held: dict[str, Any], batch: Batches, value: Array, settings: StepSettings) -> tuple[Array, Any, Any]:
    """Loss, critics and moments after a step towards the rewards plus the values (B,) of the next states."""
    target = batch.rewards + batch.discounts * jnp.minimum(value, settings.most)
    weight = 1.0 / (1.0 + jnp.abs(target) / settings.scale)

    def loss(critics: list[Network]) -> Array:
        errors = [weight * (_value(net, batch.features, batch.actions) - target) for net in critics]
        return 0.5 * sum(jnp.mean(error**2) for error in errors)

    critics, moments = held["parameters"]["critics"], held["moments"]["critics"]
    error, slope = jax.value_and_grad(loss)(critics)
    return error, *_adam(critics, slope, moments, settings.learning_rate)


def _followed(followers: Any, leaders: Any, share: Array) -> Any:
    """Followers after a step towards the leaders."""
    return jax.tree_util.tree_map(lambda follower, leader: follower + share * (leader - follower), followers, leaders)


def _hidden(layers: Network, x: Array) -> Array:
    """Hidden units after all hidden layers, for features (B, k)."""
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        x = jax.nn.relu(x @ weight.T + bias)
    return x


def _value(net: Network, features: Array, action: Array) -> Array:
    """Value (B,) of one critic."""
    hidden = _hidden(net[:-2], jnp.concatenate([features, action], 1))
    return (hidden @ net[-2].T + net[-1])[:, 0]


def _least(critics: list[Network], features: Array, action: Array) -> Array:
    """Smallest value (B,) of the critics."""
    return jnp.min(jnp.stack([_value(net, features, action) for net in critics]), 0)


def _action(actor: Network, features: Array) -> Array:
    """Actions (B, m) of a deterministic actor."""
    return jnp.tanh(_hidden(actor[:-2], features) @ actor[-2].T + actor[-1])


def _draw(actor: Network, features: Array, noise: Array) -> tuple[Array, Array]:
    """Random actions (B, m) and their log probabilities (B,)."""
    hidden = _hidden(actor[:-4], features)
    mean, log_deviation = hidden @ actor[-4].T + actor[-3], hidden @ actor[-2].T + actor[-1]
    log_deviation = jnp.clip(log_deviation, LEAST, MOST)
    action = jnp.tanh(mean + jnp.exp(log_deviation) * noise)
    volume = jnp.log(1.0 - action**2 + 1e-6)  # of tanh
    return action, jnp.sum(-0.5 * noise**2 - log_deviation - 0.5 * math.log(2.0 * math.pi) - volume, 1)


def _adam(parameters: Any, slope: Any, moments: Any, learning_rate: Array) -> tuple[Any, Any]:
    """Parameters and moments after one step of Adam, in the same structure."""
    if isinstance(parameters, list):
        pairs = [_adam(*part, learning_rate) for part in zip(parameters, slope, moments, strict=True)]
        return [values for values, _ in pairs], [state for _, state in pairs]
    count, first, second = moments
    count = count + 1.0
    first = FIRST_DECAY * first + (1.0 - FIRST_DECAY) * slope
    second = SECOND_DECAY * second + (1.0 - SECOND_DECAY) * slope**2
    deviation = jnp.sqrt(second / (1.0 - SECOND_DECAY**count)) + SMALL
    return parameters - learning_rate * first / (1.0 - FIRST_DECAY**count) / deviation, [count, first, second]
