"""The paper's networks, a small one for the digits of scikit-learn, and a residual network as the modern choice.

    build(name, classes) -> a torch module;  module(images) -> Output(logits, embedding)

``PLANS`` holds the networks in the paper's own notation: C(n,k) a convolution with n kernels of k x k and stride 1,
P(2) max pooling of 2 x 2 with stride 2, FC(n) a fully connected layer; and D(p) dropout. An ELU follows every C and
FC; the classifier, FC(classes), comes last. What enters it, before its dropout, is the embedding.

**Padding.** The paper does not say which. But its last map is 1 x 1, and it ran in TensorFlow. Without padding an image
of 32 x 32 is used up too early (28 after the first convolution, then 14, 12, 6, 4, 2, 1, and nothing left to pool).
With the padding that keeps the size ("same"), the five poolings leave 16, 8, 4, 2 and exactly 1. So it is "same"
everywhere; for a 2 x 2 kernel that is one row of zeros at the bottom and one column at the right, as in TensorFlow.

**Initialisation.** The paper does not say which. Here weights are normal with variance g / fan-in, where g = 1.55 =
1 / E[ELU(z)^2] for a standard normal z, so that no ELU makes the signal larger or smaller (He et al. 2015, whose 2 is
the same thing for a ReLU; ReLUs get 2); of the classifier the variance is 0.01 / fan-in, so that the first loss is near
log(classes). Biases are 0. Of the alternatives tried (CIFAR-100, a quarter of the width, 300 steps), variance 2 with a
classifier of variance 1 started at a loss of 14 and diverged at a learning rate of 0.05. All weights come from one
generator with the seed given.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from vicinal import checks
from vicinal.errors import InputError, ShapeError
from vicinal.learn.blocks import Dropout, EluPool, InPieces

__all__ = ["NAMES", "PLANS", "ConvNet", "Output", "ResNet", "build", "logits_of"]

PLANS = {
    "cifar100": (
        "C(192,5) P(2) C(192,1) C(240,3) D(0.1) P(2) C(240,1) C(260,3) D(0.2) P(2) C(260,1) C(280,2) D(0.3) P(2) "
        "C(280,1) C(300,2) D(0.4) P(2) C(300,1) D(0.5)"
    ),
    "svhn": ("C(32,3) C(32,3) C(32,3) P(2) C(64,3) C(64,3) C(64,3) P(2) C(128,3) C(128,3) C(128,3) P(2) FC(128)"),
    "digits": "C(32,3) C(32,3) P(2) C(64,3) C(64,3) D(0.1) P(2) FC(64) D(0.2)",
}
PLANS["stl10"] = PLANS["cifar100"]
NAMES = (*sorted(PLANS), "resnet")

_ELU_GAIN = 1 / 0.6449  # 1 / E[ELU(z)^2] = 1 / (1/2 + e^2 N(-2) - 2 sqrt(e) N(-1) + 1/2), N the normal distribution
_SHAPES = {"digits": (1, 8, 8)}
_TOKEN = re.compile(r"(C|P|FC|D)\(([\d.]+)(?:,([\d.]+))?\)")


class Output(NamedTuple):
    """What a network says of n images.

    Args:
        logits: (n, c), before the softmax.
        embedding: (n, d), what the last layer reads, before any dropout of its own.
    """

    logits: Tensor
    embedding: Tensor


def build(
    name: str,
    classes: int,
    *,
    width: float = 1.0,
    dropout: float = 1.0,
    shape: tuple[int, int, int] | None = None,
    seed: int = 0,
) -> ConvNet | ResNet:
    """A fresh network, the same for the same arguments.

    Args:
        name: ``"cifar100"`` and ``"stl10"`` (one shape, the paper's), ``"svhn"`` (the paper's), ``"digits"`` (for 8x8
            images) or ``"resnet"`` (20 layers with batch normalization).
        classes: how many there are, at least 2.
        width: factor on the number of kernels of every convolution, rounded to the nearest multiple of 4; 1 is the
            paper's network. A fully connected layer keeps its size, so the embedding has 300 dimensions for
            ``cifar100``, 76 at a quarter of its width, and 128 for ``svhn`` at any width.
        dropout: factor on every drop probability, below 2; 1 is the paper's, 0 none. ``svhn`` and ``resnet`` have no
            dropout to begin with.
        shape: channels, height and width of the images; left out, (3, 32, 32), and (1, 8, 8) for ``digits``.
        seed: of the initial weights. torch's global generators are not touched.

    Example:
        >>> network = build("cifar100", 100)
        >>> sum(weights.numel() for weights in network.parameters())
        1981028
        >>> output = network(torch.zeros(2, 3, 32, 32))
        >>> output.logits.shape, output.embedding.shape
        (torch.Size([2, 100]), torch.Size([2, 300]))
    """
    checks.one_of(name, "name", NAMES)
    checks.whole(classes, "classes", low=2)
    checks.fraction(width, "width", high=16, open_low=True)
    checks.whole(seed, "seed", low=0)
    checks.fraction(dropout, "dropout", high=1.99)
    shape = _SHAPES.get(name, (3, 32, 32)) if shape is None else shape
    if len(shape) != 3:
        raise ShapeError(f"shape: expected channels, height and width of an image, got {shape}")
    for size, what in zip(shape, ("channels", "height", "width"), strict=True):
        checks.whole(size, f"shape ({what})", low=1)
    with torch.random.fork_rng(devices=[]):  # torch's own initialisation draws from the global generator
        network = (
            ResNet(classes, width, shape) if name == "resnet" else ConvNet(PLANS[name], classes, width, dropout, shape)
        )
    _initialise(network, seed)
    return network


class ConvNet(nn.Module):
    """A network from a plan in the paper's notation; see ``build``.

    Layers are named in order: ``features.stage1.conv1`` ... ``features.conv10``, ``drop`` and ``classifier``.

    Args:
        plan: the layers, as in ``PLANS``, without the classifier.
        classes: how many there are.
        width: factor on the number of kernels.
        dropout: factor on the drop probabilities.
        shape: channels, height and width of the images.
    """

    def __init__(self, plan: str, classes: int, width: float, dropout: float, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.images = Images(shape)
        self.features, dimension, drop = _features(plan, width, dropout, shape)
        self.drop = Dropout(drop)
        self.classifier = nn.Linear(dimension, classes)

    def forward(self, images: Tensor) -> Output:
        """Logits and embedding of images (n, channels, height, width)."""
        embedding = self.features(self.images(images)).flatten(1)
        return Output(self.classifier(self.drop(embedding)), embedding)


class ResNet(nn.Module):
    """A residual network of 20 layers with batch normalization and ReLU, for small images (He et al. 2016).

    Three stages of three blocks with 16, 32 and 64 kernels; a shortcut that changes the size is a 1x1 convolution. The
    mean over the last map, 64 numbers, is the embedding.

    Args:
        classes: how many there are.
        width: factor on the number of kernels.
        shape: channels, height and width of the images.
    """

    def __init__(self, classes: int, width: float, shape: tuple[int, int, int]) -> None:
        super().__init__()
        channels = [_scaled(n, width) for n in (16, 32, 64)]
        self.images = Images(shape)
        self.stem = _normed(shape[0], channels[0], 3, 1)
        blocks, before = OrderedDict[str, nn.Module](), channels[0]
        for stage, after in enumerate(channels, 1):
            for place in (1, 2, 3):
                stride = 2 if stage > 1 and place == 1 else 1
                blocks[f"block{stage}_{place}"] = Residual(before, after, stride)
                before = after
        self.blocks = nn.Sequential(blocks)
        self.classifier = nn.Linear(before, classes)

    def forward(self, images: Tensor) -> Output:
        """Logits and embedding of images (n, channels, height, width)."""
        embedding = self.blocks(functional.relu(self.stem(self.images(images)))).mean((2, 3))
        return Output(self.classifier(embedding), embedding)


class Residual(nn.Module):
    """Two convolutions with batch normalization, added to what entered, then a ReLU."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = _normed(before, after, 3, stride)
        self.second = _normed(after, after, 3, 1)
        self.shortcut = nn.Identity() if (before, stride) == (after, 1) else _normed(before, after, 1, stride)

    def forward(self, input: Tensor) -> Tensor:
        """From (n, before, height, width) to (n, after, height / stride, width / stride)."""
        return functional.relu(self.second(functional.relu(self.first(input))) + self.shortcut(input))


class Images(nn.Module):
    """The entry of a network: refuses images it was not made for, and lays out the others for fast convolutions."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.shape = tuple(shape)

    def forward(self, images: Tensor) -> Tensor:
        """The images (n, channels, height, width), with the channels last in memory."""
        if images.ndim != 4 or tuple(images.shape[1:]) != self.shape:
            wanted = ", ".join(map(str, self.shape))
            found = tuple(images.shape)
            raise ShapeError(f"images: expected shape (n, {wanted}), as this network was built, got {found}")
        if not images.is_floating_point():
            raise InputError(f"images: expected floating-point numbers, got {images.dtype}; preprocess them first")
        return images.contiguous(memory_format=torch.channels_last)


def logits_of(output: object) -> Tensor:
    """The logits among what a network returns: itself, its attribute ``logits``, or the first of a tuple.

    Example:
        >>> logits_of(Output(torch.ones(1, 2), torch.zeros(1, 3)))
        tensor([[1., 1.]])
    """
    found = getattr(output, "logits", output)
    if isinstance(found, (tuple, list)) and found:
        found = found[0]
    if not isinstance(found, Tensor) or found.ndim != 2:
        said = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InputError(f"network: expected logits (n, c), alone, first of a tuple, or named logits, got {said}")
    return found


class _Features:
    """Builds the layers up to the embedding, keeping track of the shape of one image between them."""

    def __init__(self, width: float, dropout: float, shape: tuple[int, int, int]) -> None:
        self.layers = OrderedDict[str, nn.Module]()
        self.shape = self.input = shape
        self.width, self.dropout = width, dropout
        self.convolutions = self.pools = self.largest = 0

    def convolution(self, kernels: int, size: int, *, elu: bool) -> None:
        """C(kernels, size) with the padding that keeps the height and width, and its ELU if no pooling brings it."""
        self.convolutions += 1
        before, height, breadth = self.shape
        after = _scaled(kernels, self.width)
        if size % 2 == 0:  # as in TensorFlow, the odd one out is at the bottom and at the right
            self.layers[f"pad{self.convolutions}"] = nn.ZeroPad2d((size // 2 - 1, size // 2, size // 2 - 1, size // 2))
        padding = size // 2 if size % 2 else 0
        self.layers[f"conv{self.convolutions}"] = nn.Conv2d(before, after, size, padding=padding)
        if elu:
            self.layers[f"elu{self.convolutions}"] = nn.ELU()
        self.shape = (after, height, breadth)
        self.largest = max(self.largest, after * height * breadth)

    def pool(self, drop: float) -> None:
        """ELU, D(drop) and P(2). What comes before the first one runs in pieces, as nothing later is as wide."""
        self.pools += 1
        channels, height, breadth = self.shape
        if min(height, breadth) < 2:
            raise ShapeError(f"shape: expected larger images for this network, got {self.input}, too small to pool")
        self.layers[f"pool{self.pools}"] = EluPool(drop * self.dropout)
        self.shape = (channels, height // 2, breadth // 2)
        if self.pools == 1:
            self.layers = OrderedDict(stage1=InPieces(self.layers, self.largest))

    def full(self, units: int) -> None:
        """FC(units) and its ELU."""
        self.layers["flatten"] = nn.Flatten()
        self.layers["full"] = nn.Linear(math.prod(self.shape), units)
        self.layers["elu_full"] = nn.ELU()
        self.shape = (units, 1, 1)


def _features(plan: str, width: float, dropout: float, shape: tuple[int, int, int]) -> tuple[nn.Sequential, int, float]:
    """The layers up to the embedding, its dimension, and the probability of the dropout behind it."""
    features, last = _Features(width, dropout, shape), 0.0
    tokens = _TOKEN.findall(re.sub(r"D\((\S+)\) P\(2\)", r"P(2,\1)", plan))
    for (kind, first, second), (follows, _, _) in zip(tokens, [*tokens[1:], ("", "", "")], strict=True):
        if kind == "C":
            features.convolution(int(first), int(second), elu=follows != "P")
        elif kind == "P":
            features.pool(float(second or 0))
        elif kind == "FC":
            features.full(int(first))
        else:
            last = float(first) * dropout
    return nn.Sequential(features.layers), math.prod(features.shape), last


def _scaled(kernels: int, width: float) -> int:
    """The nearest multiple of 4, of two the larger; at the paper's width the paper's number."""
    return kernels if width == 1 else max(4, 4 * math.floor(kernels * width / 4 + 0.5))


def _normed(before: int, after: int, size: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False)
    return nn.Sequential(OrderedDict(conv=convolution, norm=nn.BatchNorm2d(after)))


def _initialise(network: ConvNet | ResNet, seed: int) -> None:
    """Seeded weights, laid out for convolutions with the channels last: half the time of a step on a CPU."""
    generator = torch.Generator().manual_seed(seed)
    hidden = 2.0 if isinstance(network, ResNet) else _ELU_GAIN
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                gain = 0.01 if layer is network.classifier else hidden
                layer.weight.normal_(0, math.sqrt(gain / layer.weight[0].numel()), generator=generator)
                if layer.bias is not None:
                    layer.bias.zero_()
            if isinstance(layer, nn.Conv2d):
                layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
