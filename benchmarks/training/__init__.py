"""The training of every model in kernels/models beside its twins in numpy, JAX and PyTorch. One file for each model."""

from __future__ import annotations

from . import (
    autoencoder,
    cnn,
    cp_decomposition,
    gaussian_mixture,
    gpt,
    logistic_regression,
    lstm,
    matrix_factorization,
    mlp,
)

ALL = (
    mlp.TWIN,
    cnn.TWIN,
    lstm.TWIN,
    gpt.TWIN,
    logistic_regression.TWIN,
    autoencoder.TWIN,
    matrix_factorization.TWIN,
    cp_decomposition.TWIN,
    gaussian_mixture.TWIN,
)
BY_NAME = {twin.name: twin for twin in ALL}
