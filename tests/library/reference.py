"""What PyTorch has no function for, said with its functions: plain loops where those are plainest."""

from __future__ import annotations

import torch

from .reference_activations import *  # noqa: F403 (the oracles' names)
from .reference_algebra import *  # noqa: F403 (the oracles' names)
from .reference_losses import *  # noqa: F403 (the oracles' names)
from .reference_optimizers import *  # noqa: F403 (the oracles' names)
from .reference_pooling import *  # noqa: F403 (the oracles' names)
from .reference_sequences import *  # noqa: F403 (the oracles' names)

Tensor = torch.Tensor
