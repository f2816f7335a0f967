"""The distance loss against pytorch-metric-learning, a slow loop and finite differences; pairs against their rules."""

from __future__ import annotations

import math
from typing import Any

import lightning
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from vicinal.errors import InputError, ShapeError
from vicinal.learn.batches import PairBatches
from vicinal.learn.losses import distance_loss, sample_pairs

LABELS = st.lists(st.integers(-2, 5), min_size=2, max_size=60)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some(n: int = 12, d: int = 5, scale: float = 3.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = seeded(seed)
    return torch.randn(n, d, generator=random, dtype=torch.float64) * scale, torch.arange(n) % 3


def every_pair(n: int) -> Tensor:
    return torch.combinations(torch.arange(n))


# --- the loss


def theirs(vectors: Tensor, labels: Tensor, pairs: Tensor, margin: float) -> Tensor:
    """The mean over all pairs, of a library that takes it over same and other pairs apart, and leaves out zeros."""
    first, second = pairs.unbind(1)
    same = labels[first] == labels[second]
    distances = torch.linalg.vector_norm(vectors.detach()[first] - vectors.detach()[second], dim=1)
    none = first[:0]
    measure = LpDistance(normalize_embeddings=False, p=2, power=1)
    loss = ContrastiveLoss(pos_margin=0, neg_margin=margin, distance=measure)
    of_same = loss(vectors, labels, (first[same], second[same], none, none)) * (distances[same] > 0).sum()
    of_others = loss(vectors, labels, (none, none, first[~same], second[~same])) * (distances[~same] < margin).sum()
    return (of_same + of_others) / len(pairs)


@pytest.mark.parametrize("margin", [0.0, 4.0, 25.0])
@pytest.mark.parametrize("scale", [0.2, 3.0, 30.0])
def test_it_is_the_contrastive_loss_of_pytorch_metric_learning(margin: float, scale: float) -> None:
    vectors, labels = some(scale=scale)
    pairs = every_pair(len(labels))
    found = []
    for loss in (distance_loss, theirs):
        leaf = vectors.clone().requires_grad_()
        value = loss(leaf, labels, pairs, margin)
        value.backward()
        found.append((value.detach(), leaf.grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-9)


@given(LABELS, st.integers(0, 1000), st.floats(0, 40))
def test_it_is_eq_2_pair_by_pair(labels: list[int], seed: int, margin: float) -> None:
    random = seeded(seed)
    vectors = torch.randn(len(labels), 3, generator=random, dtype=torch.float64) * 10
    pairs = torch.randint(len(labels), (7, 2), generator=random)
    total = 0.0
    for i, j in pairs.tolist():
        distance = math.dist(vectors[i].tolist(), vectors[j].tolist())
        total += distance if labels[i] == labels[j] else max(0.0, margin - distance)
    assert float(distance_loss(vectors, torch.tensor(labels), pairs, margin)) == pytest.approx(total / 7, abs=1e-9)


def test_its_gradient_is_that_of_finite_differences() -> None:
    vectors, labels = some(scale=2.0)
    pairs = sample_pairs(labels, seeded(1))
    assert torch.autograd.gradcheck(lambda v: distance_loss(v, labels, pairs, 5.0), vectors.requires_grad_())


@pytest.mark.parametrize("same", [True, False])
def test_the_gradient_at_distance_0_is_0(same: bool) -> None:
    vectors = torch.ones(2, 4, requires_grad=True)
    loss = distance_loss(vectors, torch.tensor([0, 0 if same else 1]), torch.tensor([[0, 1]]))
    loss.backward()
    assert loss.item() == (0.0 if same else 25.0)
    assert torch.equal(vectors.grad, torch.zeros(2, 4))


def test_a_pair_at_distance_0_does_not_spoil_the_others() -> None:
    vectors = torch.tensor([[1.0, 1.0], [1.0, 1.0], [4.0, 5.0]], requires_grad=True)
    distance_loss(vectors, torch.tensor([0, 0, 0]), torch.tensor([[0, 1], [1, 2]])).backward()
    torch.testing.assert_close(vectors.grad, torch.tensor([[0.0, 0.0], [-0.3, -0.4], [0.3, 0.4]]))


def test_points_further_apart_than_the_margin_are_left_alone() -> None:
    vectors = torch.tensor([[0.0], [30.0]], requires_grad=True)
    loss = distance_loss(vectors, torch.tensor([0, 1]), torch.tensor([[0, 1]]))
    loss.backward()
    assert loss.item() == 0.0
    assert not vectors.grad.any()


def test_half_precision_is_summed_in_float32() -> None:
    vectors, labels = some(scale=3.0)
    pairs = every_pair(len(labels))
    narrow = vectors.to(torch.bfloat16)
    found = distance_loss(narrow, labels, pairs)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(distance_loss(narrow.double(), labels, pairs)), rel=1e-6)


@given(LABELS, st.integers(0, 1000))
def test_neither_the_order_of_pairs_nor_that_within_them_counts(labels: list[int], seed: int) -> None:
    random = seeded(seed)
    vectors = torch.randn(len(labels), 3, generator=random, dtype=torch.float64)
    pairs = torch.randint(len(labels), (6, 2), generator=random)
    other = pairs[torch.randperm(6, generator=random)].flip(1)
    wanted = torch.tensor(labels)
    torch.testing.assert_close(distance_loss(vectors, wanted, pairs), distance_loss(vectors, wanted, other))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"margin": -1.0}, InputError, "margin: expected a finite number of at least 0, got -1"),
        ({"margin": float("nan")}, InputError, "margin: expected a finite number"),
        ({"margin": float("inf")}, InputError, "margin: expected a finite number"),
        ({"vectors": torch.zeros(4)}, ShapeError, r"vectors: expected floats of shape \(n, d\), got .* \(4,\)"),
        ({"vectors": torch.zeros(4, 2, dtype=torch.int64)}, ShapeError, "vectors: expected floats"),
        ({"labels": torch.zeros(3)}, ShapeError, r"labels: expected shape \(4,\), one for each vector, got \(3,\)"),
        ({"pairs": torch.zeros(0, 2, dtype=torch.int64)}, ShapeError, "at least one pair"),
        ({"pairs": torch.zeros(2, 3, dtype=torch.int64)}, ShapeError, r"\(p, 2\), at least one pair, got .* \(2, 3\)"),
        ({"pairs": torch.zeros(2, 2)}, ShapeError, "pairs: expected whole numbers"),
        ({"pairs": torch.tensor([[0, 4]])}, InputError, "pairs: expected rows from 0 to 3, got 0 to 4"),
        ({"pairs": torch.tensor([[-1, 2]])}, InputError, "got -1 to 2"),
    ],
)
def test_what_it_cannot_take_is_refused(change: dict[str, Any], error: type[Exception], says: str) -> None:
    sound = {"vectors": torch.zeros(4, 2), "labels": torch.zeros(4, dtype=torch.int64), "pairs": torch.tensor([[0, 1]])}
    with pytest.raises(error, match=says):
        distance_loss(**{**sound, **change})


# --- the pairs


@given(LABELS, st.floats(0, 1), st.integers(0, 1000))
def test_half_as_many_pairs_as_points_none_twice_and_the_share_in_pairs_of_one_class(
    labels: list[int], share: float, seed: int
) -> None:
    wanted = torch.tensor(labels)
    possible = sum(labels.count(one) // 2 for one in set(labels))
    if math.ceil(share * len(labels) / 2 - 1e-9) > min(possible, len(labels) // 2):
        with pytest.raises(InputError):
            sample_pairs(wanted, seeded(seed), share=share)
        return
    pairs = sample_pairs(wanted, seeded(seed), share=share)
    assert pairs.shape == (len(labels) // 2, 2)
    assert len(set(pairs.flatten().tolist())) == 2 * len(pairs)
    assert set(pairs.flatten().tolist()) <= set(range(len(labels)))
    same = wanted[pairs[:, 0]] == wanted[pairs[:, 1]]
    assert 2 * int(same.sum()) >= share * len(labels) - 1e-6


def test_every_point_can_stand_in_a_pair_of_its_class_and_in_one_of_two_classes() -> None:
    labels = torch.tensor([0] * 4 + [1] * 3 + [2] * 2 + [3])
    alike, unlike = set(), set()
    for seed in range(200):
        pairs = sample_pairs(labels, seeded(seed))
        same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        alike |= set(pairs[same].flatten().tolist())
        unlike |= set(pairs[~same].flatten().tolist())
    assert alike == set(range(9))
    assert unlike == set(range(10))


def test_any_two_points_can_be_a_pair() -> None:
    """Of six points, four of one class: seven pairs of one class, which come first, and fifteen in all."""
    labels = torch.tensor([0, 1, 0, 0, 1, 0])
    drawn = [sample_pairs(labels, seeded(seed)).sort(1).values.tolist() for seed in range(300)]
    assert len({tuple(pairs[0]) for pairs in drawn}) == 7
    assert len({tuple(pair) for pairs in drawn for pair in pairs}) == 15


def test_the_same_generator_gives_the_same_pairs_and_goes_on_to_others() -> None:
    labels = torch.arange(40) % 4
    first, second = seeded(3), seeded(3)
    assert torch.equal(sample_pairs(labels, first), sample_pairs(labels, second))
    assert not torch.equal(sample_pairs(labels, first), sample_pairs(labels, seeded(3)))


@pytest.mark.parametrize(
    ("labels", "share", "error", "says"),
    [
        ([0, 1, 2, 3], 0.2, InputError, r"expected 1 same-class pairs for a share of 0\.2 of 4 points, but only 0"),
        ([0], 0.2, ShapeError, r"labels: expected shape \(n,\) with at least two points, got \(1,\)"),
        ([[0, 1]], 0.2, ShapeError, r"got \(1, 2\)"),
        ([0, 0], 1.2, InputError, r"share: expected a number in \[0, 1\], got 1\.2"),
        ([0, 0, 0], 1.0, InputError, "share: expected less than 1 for an odd number of points, 3"),
    ],
)
def test_pairs_that_cannot_be_are_refused(labels: Any, share: float, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        sample_pairs(torch.tensor(labels), seeded(0), share=share)


# --- alone, in loops of other people


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Sequential(nn.Linear(6, 16), nn.ELU(), nn.Linear(16, 4)), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        embedding = self.body(x)
        return self.head(embedding), embedding


def blobs() -> TensorDataset:
    random = seeded(5)
    labels = torch.arange(120) % 3
    return TensorDataset(torch.randn(120, 6, generator=random) + 2.0 * nn.functional.one_hot(labels, 6), labels)


def loader(seed: int = 0) -> DataLoader[Any]:
    data = blobs()
    return DataLoader(data, batch_sampler=PairBatches(data.tensors[1], 20, seed=seed))


def loss_of_all_pairs(net: Net) -> float:
    inputs, labels = blobs().tensors
    with torch.no_grad():
        return distance_loss(net(inputs)[1], labels, every_pair(len(labels)), 10.0).item()


def total_loss(net: Net, inputs: Tensor, labels: Tensor, alpha: float, random: torch.Generator) -> Tensor:
    logits, embedding = net(inputs)
    return cross_entropy(logits, labels) + alpha * distance_loss(embedding, labels, sample_pairs(labels, random), 10.0)


def plainly_trained(alpha: float) -> Net:
    net, random, batches = Net(), seeded(1), loader()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(30):
        for inputs, labels in batches:
            optimizer.zero_grad()
            total_loss(net, inputs, labels, alpha, random).backward()
            optimizer.step()
    return net


def test_in_a_plain_training_loop_it_comes_down() -> None:
    assert loss_of_all_pairs(plainly_trained(1.0)) < 0.75 * loss_of_all_pairs(plainly_trained(0.0))


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.random = Net(), seeded(1)

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        return total_loss(self.net, *batch, 1.0, self.random)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # Lightning's own, of torch's
@pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning")
def test_in_a_lightning_module_it_ends_where_the_plain_loop_ends(tmp_path: Any) -> None:
    module = Module()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    quiet |= {"enable_model_summary": False, "default_root_dir": tmp_path, "barebones": False}
    trainer = lightning.Trainer(max_epochs=30, accelerator="cpu", use_distributed_sampler=False, **quiet)
    trainer.fit(module, loader())
    for mine, theirs in zip(plainly_trained(1.0).parameters(), module.net.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)
