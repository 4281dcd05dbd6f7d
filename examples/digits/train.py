"""Train a small network on scikit-learn's digits, with augmentation in loader processes.

A real job with a host bottleneck: 1,797 real images of hand-written digits, each training image
rotated and deformed anew every time it is seen. Loader processes do that work and hand batches to
the one process that trains. When both must share a core, the training process waits for its data.

Everything random comes from seeds, so two runs do the same work, whatever cores they have.
The only line about Ouvrage is ``watch``: it tells how long the loop waited for each batch.
"""

from __future__ import annotations

import argparse
import os

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"  # one core must mean one core; read at import

import multiprocessing as mp
from collections.abc import Iterator

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

try:
    from ouvrage import watch
except ImportError:  # the example trains just as well without the meter
    watch = iter

SIDE = 8
GRID = np.mgrid[0:SIDE, 0:SIDE].astype(float)
Batch = tuple[np.ndarray, np.ndarray]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images in 0..1 and labels: 1,500 to train on, 297 held out, the same split every time."""
    images, labels = load_digits(return_X_y=True)
    scaled = (images / 16).astype(np.float32).reshape(-1, SIDE, SIDE)
    kept, held, kept_labels, held_labels = train_test_split(
        scaled, labels, test_size=297, random_state=0, stratify=labels
    )
    return kept, kept_labels, held, held_labels


def altered(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same digit as another hand might have written it: turned, then pulled out of shape."""
    turned = ndimage.rotate(image, rng.uniform(-15, 15), reshape=False, order=3)
    pull = [2.5 * ndimage.gaussian_filter(rng.uniform(-1, 1, image.shape), 1.5) for _ in "yx"]
    return ndimage.map_coordinates(turned, GRID + pull, order=3)


def load(worker: int, batches: mp.Queue, options: argparse.Namespace) -> None:
    """Loader process: prepare every ``options.workers``-th batch of every epoch."""
    if options.loader_core is not None:
        os.sched_setaffinity(0, {options.loader_core})
        if options.loader_core == options.compute_core:
            os.nice(10)  # training goes first, as it would on a device of its own
    images, labels, _, _ = digits()
    for epoch in range(options.epochs):
        order = np.random.default_rng((options.seed, epoch)).permutation(
            np.tile(np.arange(len(images)), options.views)
        )
        cuts = np.array_split(order, len(order) // options.batch)
        for number in range(worker, len(cuts), options.workers):
            rng = np.random.default_rng((options.seed, epoch, number))
            chosen = cuts[number]
            batch = np.stack([altered(images[i], rng) for i in chosen]).astype(np.float32)
            batches.put((batch.reshape(len(chosen), -1), labels[chosen]))
        batches.put(None)


def epoch_of(queues: list[mp.Queue]) -> Iterator[Batch]:
    """The batches of one epoch, taken from the loaders in turn so that their order is fixed."""
    open_queues = list(queues)
    while open_queues:
        for queue in list(open_queues):
            batch = queue.get()
            if batch is None:
                open_queues.remove(queue)
            else:
                yield batch


def train(queues: list[mp.Queue], options: argparse.Namespace) -> None:
    """Train, and say after each epoch how well digits never seen are read."""
    _, _, held, held_labels = digits()
    held = held.reshape(len(held), -1)
    model = MLPClassifier((512, 512), learning_rate_init=3e-4, random_state=options.seed)
    classes = np.arange(10)
    for epoch in range(1, options.epochs + 1):
        for images, labels in watch(epoch_of(queues)):
            model.partial_fit(images, labels, classes=classes)
        loss = log_loss(held_labels, model.predict_proba(held), labels=classes)
        accuracy = model.score(held, held_labels)
        print(f"Epoch {epoch}/{options.epochs} loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)


def parsed() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--views", type=int, default=6, help="versions of each image an epoch")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1, help="loader processes")
    parser.add_argument("--compute-core", type=int, help="CPU number for the training process")
    parser.add_argument("--loader-core", type=int, help="CPU number for the loader processes")
    parser.add_argument(
        "--spread", action="store_true", help="train on the first core of ours, load on the last"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.spread:
        ours = sorted(os.sched_getaffinity(0))
        options.compute_core, options.loader_core = ours[0], ours[-1]
    return options


def main() -> None:
    """Start the loaders, train, and leave no process behind."""
    options = parsed()
    context = mp.get_context("fork")
    queues = [context.Queue(maxsize=4) for _ in range(options.workers)]
    loaders = [
        context.Process(target=load, args=(worker, queue, options), daemon=True)
        for worker, queue in enumerate(queues)
    ]
    for loader in loaders:
        loader.start()
    if options.compute_core is not None:
        os.sched_setaffinity(0, {options.compute_core})
    train(queues, options)
    for loader in loaders:
        loader.join()


if __name__ == "__main__":
    main()
