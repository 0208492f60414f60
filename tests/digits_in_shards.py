"""The network of benchmarks/digits.py in two shards. Run as a script, on two workers of its own, to be killed there:

python -m tests.digits_in_shards CHECKPOINT EXAMPLES EPOCHS
"""

from __future__ import annotations

import sys
from typing import Any

import tensorswap as ts
from tensorswap import datasets, models


def train(examples: int, epochs: int, **options: Any) -> Any:
    training, _ = datasets.digits()
    data = {name: array[:examples] for name, array in training.items()}
    model = models.get("cnn")
    return ts.fit(
        model.program, model.params(data), data, sizes=model.sizes(data), batch_size=64, lr=3e-3, epochs=epochs,
        metrics=model.metrics, progress=False, shards=2, **options,
    )  # fmt: skip


def main() -> None:
    from tensorswap.cluster.local_cluster import start

    checkpoint, examples, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    train(examples, epochs, cluster=start(2), checkpoint=checkpoint, checkpoint_seconds=0, resume=True)
    print("done")


if __name__ == "__main__":
    main()
