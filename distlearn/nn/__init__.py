"""A transformer in numpy: layers with explicit forward, input gradient and weight gradient.

``build(ModelConfig(...))`` makes a `Model`; ``model.init(seed)`` its parameters, a dict of arrays;
``accumulate`` the gradients of a batch; an `Optimizer` updates. Every layer is a `Module`:
`forward`, `backward_input`, `backward_weight`, and a `Saved` state between them.
"""

from __future__ import annotations

from distlearn.nn.activation import GeluErf, GeluTanh, Relu, Silu, SwiGLU, Tanh
from distlearn.nn.adagrad import Adagrad
from distlearn.nn.adam import Adam, AdamW
from distlearn.nn.arrays import Array, Grads, Params, add_gradients, bfloat16, float16, narrow, wide
from distlearn.nn.attention import Attention, attention_backward, attention_forward, softmax
from distlearn.nn.checkpoint import CheckpointError, load, save
from distlearn.nn.clip import clip_by_norm, combine_norms, global_norm
from distlearn.nn.compose import Fork, Residual, Sequential
from distlearn.nn.config import ModelConfig
from distlearn.nn.dropout import Dropout
from distlearn.nn.embedding import PositionEmbedding, TokenEmbedding
from distlearn.nn.linear import Linear
from distlearn.nn.loss import CrossEntropy, MeanSquaredError
from distlearn.nn.loss_scale import LossScale, overflowed
from distlearn.nn.memory import keep_freed_memory
from distlearn.nn.mlp import mlp
from distlearn.nn.model import Model, build, cast, shared_parameters
from distlearn.nn.module import EVALUATION, Context, Module, Saved, held_bytes
from distlearn.nn.moe import MixtureOfExperts
from distlearn.nn.norm import LayerNorm, RMSNorm
from distlearn.nn.optimizer import Optimizer, OptimizerState
from distlearn.nn.precision import MixedPrecision, StepReport
from distlearn.nn.recompute import Recompute
from distlearn.nn.rope import Rope, rotate
from distlearn.nn.router import Router, Routing
from distlearn.nn.sgd import SGD
from distlearn.nn.training import Step, accumulate, train_step

__all__ = [
    "EVALUATION",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Array",
    "Attention",
    "CheckpointError",
    "Context",
    "CrossEntropy",
    "Dropout",
    "Fork",
    "GeluErf",
    "GeluTanh",
    "Grads",
    "LayerNorm",
    "Linear",
    "LossScale",
    "MeanSquaredError",
    "MixedPrecision",
    "MixtureOfExperts",
    "Model",
    "ModelConfig",
    "Module",
    "Optimizer",
    "OptimizerState",
    "Params",
    "PositionEmbedding",
    "RMSNorm",
    "Recompute",
    "Relu",
    "Residual",
    "Rope",
    "Router",
    "Routing",
    "Saved",
    "Sequential",
    "Silu",
    "Step",
    "StepReport",
    "SwiGLU",
    "Tanh",
    "TokenEmbedding",
    "accumulate",
    "add_gradients",
    "attention_backward",
    "attention_forward",
    "bfloat16",
    "build",
    "cast",
    "clip_by_norm",
    "combine_norms",
    "float16",
    "global_norm",
    "held_bytes",
    "keep_freed_memory",
    "load",
    "mlp",
    "narrow",
    "overflowed",
    "rotate",
    "save",
    "shared_parameters",
    "softmax",
    "train_step",
    "wide",
]
