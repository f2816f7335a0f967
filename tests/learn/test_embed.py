"""Any torch model: what is kept of it, against running it by hand, and how it is left."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from vicinal.errors import InputError, ShapeError
from vicinal.learn.embed import fingerprint, from_model
from vicinal.values import Embeddings

N, D, C = 23, 6, 4


def data(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N, D, generator=generator), torch.randint(0, C, (N,), generator=generator)


def batches(size: int = 8) -> list[tuple[Tensor, Tensor]]:
    inputs, labels = data()
    return list(zip(inputs.split(size), labels.split(size), strict=True))


def mlp() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(
        OrderedDict(
            first=nn.Linear(D, 9), norm=nn.BatchNorm1d(9), act=nn.ReLU(), drop=nn.Dropout(0.5), head=nn.Linear(9, C)
        )
    )


class Answer(NamedTuple):
    logits: Tensor
    hidden: Tensor


class Styled(nn.Module):
    """One network, whose output is wrapped in the style asked for."""

    def __init__(self, style: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.body, self.head, self.style = nn.Linear(D, 5), nn.Linear(5, C), style

    def forward(self, x: Tensor) -> Any:
        hidden = self.body(x).tanh()
        return self.style(self.head(hidden), hidden)


class Tokens(nn.Module):
    """(n, t, d) inside, a class token in front of the head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, C)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.encoder(x)[:, 0])
        return out


def encoded(model: Tokens, x: Tensor) -> Tensor:
    model.eval()
    with torch.no_grad():
        out: Tensor = model.encoder(x)
    return out


def snapshot(model: nn.Module) -> dict[str, Any]:
    """All that must be the same afterwards."""
    return {
        "modes": [part.training for part in model.modules()],
        "hooks": [
            (dict(part._forward_hooks), dict(part._forward_pre_hooks), dict(part._forward_pre_hooks_with_kwargs))
            for part in model.modules()
        ],
        "state": {name: (value.clone(), value.device) for name, value in model.state_dict().items()},
        "objects": [id(value) for value in (*model.parameters(), *model.buffers())],
        "gradients": [(parameter.requires_grad, parameter.grad) for parameter in model.parameters()],
        "random": torch.random.get_rng_state(),
    }


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in ("modes", "hooks", "objects", "gradients"):
        assert before[name] == after[name], name
    assert torch.equal(before["random"], after["random"])
    for name, (value, device) in before["state"].items():
        assert torch.equal(value, after["state"][name][0]), name
        assert device == after["state"][name][1]


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_default_is_the_input_of_the_last_linear_layer() -> None:
    model, (inputs, labels) = mlp(), data()
    found = from_model(model, batches())
    model.eval()
    with torch.no_grad():
        hidden = model.act(model.norm(model.first(inputs)))
        logits = model.head(hidden)
    np.testing.assert_array_equal(found.vectors, hidden.numpy())
    np.testing.assert_allclose(found.logits, logits.numpy(), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found.labels, labels.numpy())
    np.testing.assert_array_equal(found.predicted, logits.argmax(1).numpy())


def test_values_from_model_is_the_same_door() -> None:
    np.testing.assert_array_equal(
        Embeddings.from_model(mlp(), batches(), layer="first").vectors,
        from_model(mlp(), batches(), layer="first").vectors,
    )


def test_layer_by_name_and_by_submodule_keep_the_output() -> None:
    model, (inputs, _) = mlp(), data()
    by_name = from_model(model, batches(), layer="norm")
    by_module = from_model(model, batches(), layer=model.norm)
    model.eval()
    with torch.no_grad():
        wanted = model.norm(model.first(inputs)).numpy()
    np.testing.assert_allclose(by_name.vectors, wanted, rtol=1e-6)
    np.testing.assert_array_equal(by_name.vectors, by_module.vectors)
    assert by_name.facts["layer"] == by_module.facts["layer"] == "output of 'norm'"


def test_what_comes_after_the_layer_in_place_does_not_change_it() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 7), nn.ReLU(inplace=True), nn.Linear(7, C))
    found = from_model(model, batches(), layer="0")
    assert (found.vectors < 0).any()


def test_of_two_heads_alike_the_one_that_made_the_logits_must_run_last() -> None:
    class TwoHeads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(D, 7), nn.Linear(7, C)
            self.aux = nn.Sequential(nn.Linear(7, 5), nn.Linear(5, C))

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            hidden = self.body(x)
            return {"logits": self.head(hidden), "aux": self.aux(hidden)}

    with pytest.raises(InputError, match=r"layer: 'head', 'aux.1' all give .* the logits are not those of 'aux.1'"):
        from_model(TwoHeads(), batches(), logits="logits")
    assert from_model(TwoHeads(), batches(), logits="aux").vectors.shape[1] == 5
    assert from_model(TwoHeads(), batches(), logits="logits", layer="body").vectors.shape[1] == 7


def test_a_model_that_keeps_what_it_computes_can_still_be_trained() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(D, 7), nn.Linear(7, C)
            self.scale: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            if self.scale is None:
                self.scale = torch.ones(7) * 2
            found: Tensor = self.head(self.body(x) * self.scale)
            return found

    model = Keeps()
    from_model(model, batches())
    model(data()[0]).sum().backward()
    assert model.body.weight.grad is not None
    assert (model.body.weight.grad != 0).any()


def test_sparse_and_conjugate_buffers_are_no_obstacle() -> None:
    model = mlp()
    model.register_buffer("sparse", torch.eye(3).to_sparse())
    model.register_buffer("conjugate", torch.view_as_real(torch.tensor([1 + 2j])).view(1, 2))
    model.register_buffer("turned", torch.tensor([1 + 2j]).conj())
    found = from_model(model, batches())
    model.sparse = (2 * torch.eye(3)).to_sparse()
    assert fingerprint(model) != found.facts["fingerprint"]


def test_batches_of_different_widths_are_refused() -> None:
    model = nn.Flatten()
    loader = [torch.ones(2, 3), torch.ones(2, 4)]
    with pytest.raises(ShapeError, match="as many columns in every batch, got 3 in one batch and 4 in another"):
        from_model(model, loader, layer="", logits=False)


@pytest.mark.parametrize("loader", [5, None])
def test_what_is_no_loader_is_refused(loader: Any) -> None:
    with pytest.raises(InputError, match="loader: expected an iterable of batches"):
        from_model(mlp(), loader)


def test_what_comes_after_the_last_linear_layer_in_place_does_not_change_its_input() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(D, C)

        def forward(self, x: Tensor) -> Tensor:
            assert not torch.is_grad_enabled()
            out: Tensor = self.head(x)
            x.zero_()
            return out

    np.testing.assert_array_equal(from_model(InPlace(), [data()[0].clone()]).vectors, data()[0].numpy())


def test_a_callable_gives_the_vectors_and_the_model_the_logits() -> None:
    model = mlp()
    found = from_model(model, batches(), layer=lambda x: x * 2)
    np.testing.assert_array_equal(found.vectors, (data()[0] * 2).numpy())
    np.testing.assert_array_equal(found.logits, from_model(model, batches()).logits)
    assert found.facts["layer"].startswith("callable ")


def test_a_module_of_another_model_is_a_callable_and_left_as_found() -> None:
    other, model = nn.Sequential(nn.Linear(D, 3), nn.Dropout(0.9)), mlp()
    before = snapshot(other)
    found = from_model(model, batches(), layer=other)
    assert_same(before, snapshot(other))
    with torch.no_grad():
        np.testing.assert_array_equal(found.vectors, torch.cat([other[0](x) for x, _ in batches()]).numpy())
    assert found.facts["layer"] == "callable Sequential"


def test_no_logits_need_no_run_of_the_model() -> None:
    class Never(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise AssertionError("not to be run")

    found = from_model(Never(), batches(), layer=lambda x: x, logits=False)
    assert found.logits is None
    assert found.predicted is None
    np.testing.assert_array_equal(found.labels, data()[1].numpy())


@pytest.mark.parametrize(
    ("style", "logits"),
    [
        (lambda a, h: {"loss": None, "scores": a, "h": h}, "scores"),
        (lambda a, h: (h, a), 1),
        (lambda a, h: [h, a], -1),
        (lambda a, h: Answer(a, h), "logits"),
        (lambda a, h: {"deep": [a]}, lambda output: output["deep"][0]),
    ],
)
def test_logits_are_named_never_guessed(style: Callable[[Tensor, Tensor], Any], logits: Any) -> None:
    found = from_model(Styled(style), batches(), logits=logits)
    plain = from_model(Styled(lambda a, h: a), batches())
    np.testing.assert_array_equal(found.logits, plain.logits)
    np.testing.assert_array_equal(found.vectors, plain.vectors)


@pytest.mark.parametrize(
    ("style", "logits", "message"),
    [
        (lambda a, h: (h, a), None, r"a tuple of 2: 0: Tensor \(8, 5\), 1: Tensor \(8, 4\); say .* logits=0"),
        (lambda a, h: {"y": a}, None, r"a dict of 1: 'y': Tensor \(8, 4\); say .* logits='y'"),
        (lambda a, h: Answer(a, h), None, r"logits: Tensor \(8, 4\), hidden: .* logits='logits'"),
        (lambda a, h: "words", None, r"a str; say .* logits=lambda"),
        (lambda a, h: {"y": a}, "z", r"'z' is not in the model's output, which is a dict of 1: 'y'"),
        (lambda a, h: (h, a), 2, r"2 is not in the model's output"),
        (lambda a, h: (h, a), True, r"True is not in the model's output"),
        (lambda a, h: a, "shape", r"'shape' is not in the model's output, which is Tensor"),
        (lambda a, h: (h, None), 1, r"expected a tensor at 1, got a NoneType"),
    ],
)
def test_logits_that_are_not_named_are_refused(style: Any, logits: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_model(Styled(style), batches(), logits=logits)


def test_transformer_with_a_class_token() -> None:
    model, x = Tokens(), torch.randn(10, 5, 8)
    found = from_model(model, [x[:6], x[6:]])
    np.testing.assert_allclose(found.vectors, encoded(model, x)[:, 0].numpy(), atol=2e-6)
    assert found.labels is None


def test_tokens_are_pooled_only_as_told() -> None:
    model, x = Tokens(), torch.randn(10, 5, 8)
    with pytest.raises(ShapeError, match=r"vectors \(n, d\) from the output of 'encoder', got \(10, 5, 8\); pass pool"):
        from_model(model, [x], layer="encoder")
    found = from_model(model, [x], layer="encoder", pool=lambda tokens: tokens.mean(1))
    np.testing.assert_allclose(found.vectors, encoded(model, x).mean(1).numpy(), atol=2e-6)


def test_a_layer_inside_the_fused_transformer_is_seen() -> None:
    model, x = Tokens(), torch.randn(10, 5, 8)
    found = from_model(model, [x], layer="encoder.layers.1.linear1", pool=lambda v: v[:, 0])
    assert found.vectors.shape == (10, 16)


def test_a_layer_that_gives_several_things_needs_pool() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory, self.head = nn.LSTM(D, 3, batch_first=True), nn.Linear(3, C)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.head(self.memory(x)[1][0][-1])
            return out

    model, x = Recurrent(), torch.randn(4, 7, D)
    with pytest.raises(InputError, match=r"a tensor from the output of 'memory', got a tuple of 2.*pass pool"):
        from_model(model, [x], layer="memory")
    found = from_model(model, [x], layer="memory", pool=lambda out: out[0][:, -1])
    np.testing.assert_allclose(found.vectors, from_model(model, [x]).vectors, atol=1e-6)


def test_maps_of_one_pixel_are_vectors() -> None:
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.AdaptiveAvgPool2d(1), nn.Conv2d(5, C, 1), nn.Flatten())
    x = torch.randn(6, 3, 8, 8)
    found = from_model(model, [x], layer="1")
    with torch.no_grad():
        np.testing.assert_allclose(found.vectors, model[0](x).mean((2, 3)).numpy(), atol=1e-6)
    with pytest.raises(
        InputError, match=r"torch.nn.Linear .* found none; name the layer .* such as '3', '2', '1', '0'"
    ):
        from_model(model, [x])
    with pytest.raises(ShapeError, match=r"got \(6, 5, 6, 6\)"):
        from_model(model, [x], layer="0")


def test_tied_weights_and_a_second_name() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)
            self.b.weight = self.a.weight
            self.alias = self.b

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.alias(self.a(x).relu())
            return out

    model = Tied()
    before = snapshot(model)
    found = from_model(model, batches())
    assert_same(before, snapshot(model))
    assert model.a.weight is model.b.weight
    with torch.no_grad():
        np.testing.assert_allclose(found.vectors, model.a(data()[0]).relu().numpy(), atol=1e-6)
    np.testing.assert_array_equal(from_model(model, batches(), layer="alias").vectors, found.logits.astype(np.float32))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.head = nn.Linear(D, D), nn.Linear(D, C)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.mix(self.mix(x)))
        return out


def test_a_layer_that_runs_twice_is_refused_by_name_and_harmless_otherwise() -> None:
    model = Twice()
    with pytest.raises(InputError, match="'mix' ran 2 times in one forward pass"):
        from_model(model, batches(), layer="mix")
    with torch.no_grad():
        wanted = model.mix(model.mix(data()[0])).numpy()
    np.testing.assert_allclose(from_model(model, batches()).vectors, wanted, atol=1e-6)
    model.head = model.mix
    with pytest.raises(InputError, match="ran 3 times in one forward pass"):
        from_model(model, batches())


def test_a_last_linear_layer_that_is_not_the_classifier_is_refused() -> None:
    class Cosine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.classes = nn.Linear(D, 5), nn.Parameter(torch.randn(C, 5))

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.project(x) @ self.classes.T
            return out

    with pytest.raises(InputError, match=r"input of 'project'\) gives 5 numbers and there are 4 logits"):
        from_model(Cosine(), batches())
    assert from_model(Cosine(), batches(), layer="project").vectors.shape == (N, 5)


def test_a_last_linear_layer_that_changes_is_refused() -> None:
    class Moody(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.small, self.large = nn.Linear(D, C), nn.Linear(D, C)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = (self.large if len(x) == 8 else self.small)(x)
            return out

    with pytest.raises(InputError, match="was 'large' in one batch, 'small' in another"):
        from_model(Moody(), batches())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hed", r"got 'hed'; the closest: 'head'"),
        ("zzzzzz", r"got 'zzzzzz'; the last ones: 'head', 'drop', 'act', 'norm', 'first'"),
        (3.5, r"expected a name, a submodule, a callable or None, got 3.5"),
    ],
)
def test_an_unknown_layer_is_refused_with_the_closest_names(name: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_model(mlp(), batches(), layer=name)


def test_a_layer_that_never_runs_is_refused() -> None:
    model = mlp()
    model.add_module("spare", nn.Linear(2, 2))
    model.forward = lambda x: model.head(model.first(x))  # type: ignore[method-assign]
    with pytest.raises(InputError, match="expected 'spare' to run in the forward pass"):
        from_model(model, batches(), layer="spare")


def test_wrapped_models_are_looked_into() -> None:
    plain = from_model(mlp(), batches())
    for wrapped in (torch.compile(mlp(), backend="eager"), nn.DataParallel(mlp())):
        found = from_model(wrapped, batches())
        np.testing.assert_array_equal(found.vectors, plain.vectors)
        assert found.facts["network"] == "Sequential"


# --- loaders ----------------------------------------------------------------------------------------------------------


class Named(nn.Module):
    """Takes two named inputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.head = nn.Linear(D, C)

    def forward(self, x: Tensor, *, scale: Tensor) -> Tensor:
        out: Tensor = self.head(x * scale[:, None])
        return out


def test_loaders_of_every_kind_agree() -> None:
    inputs, labels = data()
    wanted = from_model(mlp(), batches())
    loaders: list[tuple[Any, Any]] = [
        (DataLoader(TensorDataset(inputs, labels), batch_size=5), None),
        (DataLoader(TensorDataset(inputs), batch_size=5), labels),
        (iter([(inputs.numpy(), labels.numpy())]), None),
        ([inputs[:3], inputs[3:]], labels.numpy()),
        ([[(inputs,), labels]], None),
        ([{"input": inputs, "truth": labels}], "truth"),
    ]
    for loader, given in loaders:
        found = from_model(mlp(), loader, labels=given)
        np.testing.assert_allclose(found.vectors, wanted.vectors, atol=1e-6)
        np.testing.assert_array_equal(found.labels, wanted.labels)


def test_named_inputs_with_and_without_labels() -> None:
    inputs, labels = data()
    batch = {"x": inputs, "scale": torch.full((N,), 2.0)}
    found = from_model(Named(), [(batch, labels)])
    np.testing.assert_array_equal(found.vectors, (inputs * 2).numpy())
    assert from_model(Named(), [batch]).labels is None


def test_a_loader_without_a_length() -> None:
    class Stream(IterableDataset[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            return iter(data()[0])

    found = from_model(mlp(), DataLoader(Stream(), batch_size=4))
    np.testing.assert_allclose(found.vectors, from_model(mlp(), batches()).vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("loader", "options", "message"),
    [
        ([], {}, "expected at least one batch, got none"),
        ([(1, 2, 3)], {}, r"a pair \(inputs, labels\), got a tuple of 3"),
        ([()], {}, r"got a tuple of 0"),
        ([data()[0]], {"labels": "y"}, "mappings with a key 'y', got Tensor"),
        ([{"input": data()[0]}], {"labels": "y"}, "mappings with a key 'y', got a dict of 1: 'input'"),
        ([data(), data()[0]], {}, "every batch of the loader or in none"),
        ([(data()[0], data()[1][:5])], {}, r"labels: expected shape \(23,\) in this batch, got \(5,\)"),
        ([(data()[0], torch.eye(N))], {}, r"labels: expected shape \(23,\) in this batch, got \(23, 23\)"),
        ([data()], {"labels": data()[1]}, "got an array and a loader that gives labels too"),
        ([data()[0]], {"labels": [1, 2]}, "expected 23, one for each vector, got 2"),
        ([data()], {"classes": [3, 4]}, "classes: expected 4, one for each column of the logits, got 2"),
        ([data()[0] * float("nan")], {}, "vectors: expected finite numbers, got NaN in row 0"),
        ([data()[0]], {"layer": lambda x: x.T}, r"logits: expected \(6, c\), one row for each vector, got \(23, 4\)"),
    ],
)
def test_bad_loaders_are_refused(loader: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_model(mlp(), loader, **options)


def test_labels_as_an_array_and_a_shuffling_loader_do_not_go_together() -> None:
    inputs, labels = data()
    loader = DataLoader(TensorDataset(inputs), batch_size=4, shuffle=True)
    with pytest.raises(InputError, match="got one that shuffles; set shuffle=False"):
        from_model(mlp(), loader, labels=labels)


def test_only_ready_torch_modules_are_taken() -> None:
    with pytest.raises(InputError, match=r"expected a torch.nn.Module, got function"):
        from_model(lambda x: x, batches())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a lazy layer that has none yet"):
        from_model(nn.Sequential(nn.LazyLinear(C)), batches())


def test_classes_and_facts_travel() -> None:
    model = mlp()
    found = from_model(model, batches(), classes=[10, 20, 30, 40], facts={"data": "noise"})
    np.testing.assert_array_equal(found.predicted, 10 * (1 + found.logits.argmax(1)))
    assert found.facts == {
        "network": "Sequential",
        "layer": "input of 'head'",
        "torch": torch.__version__,
        "fingerprint": fingerprint(model),
        "data": "noise",
    }


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_precisions_leave_as_float32(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(D, 3), nn.Linear(3, C)).to(dtype)
    found = from_model(model, [data()[0].to(dtype)])
    assert found.vectors.dtype == np.float32
    with torch.no_grad():
        hidden = model[0](data()[0].to(dtype))
    np.testing.assert_array_equal(found.vectors, hidden.float().numpy())
    np.testing.assert_array_equal(found.logits, model[1](hidden).detach().double().numpy())


# --- left as found ----------------------------------------------------------------------------------------------------


class Rude(nn.Module):
    """Draws random numbers and counts in a buffer, whatever the mode."""

    def __init__(self, fails_at: int = 99) -> None:
        super().__init__()
        self.inner, self.fails_at = mlp(), fails_at
        self.inner.norm.eval()  # a mixture of modes, to be put back as such
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("replaced", torch.zeros(2))
        self.register_buffer("nothing", None)
        self.inner.act.register_forward_hook(lambda *_: None)

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.replaced = self.replaced + torch.rand(2)
        if self.calls >= self.fails_at:
            raise RuntimeError("half way")
        out: Tensor = self.inner(x) + torch.rand(()) * 0
        return out


@pytest.mark.parametrize("layer", [None, "inner.norm", lambda x: x])
@pytest.mark.parametrize("model", [mlp(), Rude()])
def test_the_model_is_left_as_it_was_found(model: nn.Module, layer: Any) -> None:
    layer = "norm" if layer == "inner.norm" and isinstance(model, nn.Sequential) else layer
    next(model.parameters()).requires_grad_(False)
    before = snapshot(model)
    from_model(model, DataLoader(TensorDataset(*data()), batch_size=4, shuffle=True), layer=layer)
    assert_same(before, snapshot(model))


@pytest.mark.parametrize("layer", [None, "inner.norm"])
def test_a_model_that_fails_half_way_is_left_as_it_was_found(layer: str | None) -> None:
    model = Rude(fails_at=2)
    before = snapshot(model)
    with pytest.raises(RuntimeError, match="half way"):
        from_model(model, batches(), layer=layer)
    assert_same(before, snapshot(model))


def test_a_loader_that_fails_half_way_leaves_the_model_as_it_was_found() -> None:
    def broken() -> Iterator[Any]:
        yield batches()[0]
        torch.rand(3)
        raise OSError("the disk is gone")

    model = Rude()
    before = snapshot(model)
    with pytest.raises(OSError, match="the disk is gone"):
        from_model(model, broken())
    assert_same(before, snapshot(model))


def test_evaluation_mode_calls_no_overridden_train() -> None:
    class Merging(nn.Linear):
        def train(self, mode: bool = True) -> Any:
            raise AssertionError("merging weights")

    model = nn.Sequential(nn.Linear(D, 3), Merging(3, C))
    assert from_model(model, batches()).vectors.shape == (N, 3)
    assert model[1].training


def test_the_model_still_trains_afterwards() -> None:
    model = mlp()
    from_model(model, batches())
    model(data()[0]).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters() if parameter.grad is not None)
    assert model.first.weight.grad is not None


def test_moving_puts_the_very_storages_back() -> None:
    """There is one device here, so the move is one of type: what is put back is the same in both."""
    from vicinal.learn.as_found import as_found

    model = mlp()
    model.first.weight.grad = torch.ones_like(model.first.weight)
    before, pointers = snapshot(model), [parameter.data_ptr() for parameter in model.parameters()]

    def fail() -> None:
        with as_found(model, device="cpu") as device:
            assert device == torch.device("cpu")
            model.double()
            assert model.first.weight.dtype == torch.float64
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert_same(before, snapshot(model))
    assert pointers == [parameter.data_ptr() for parameter in model.parameters()]
    assert model.first.weight.grad.dtype == torch.float32


def test_a_model_on_several_devices_is_not_moved() -> None:
    model = mlp()
    model.head.to("meta")
    with pytest.raises(InputError, match="the model lies on cpu and meta; leave device out"):
        from_model(model, batches(), device="cpu")


def test_a_model_without_weights_runs_on_the_cpu() -> None:
    found = from_model(nn.Flatten(), [torch.ones(3, 2, 2)], layer="")
    assert found.vectors.shape == (3, 4)
    assert found.facts["layer"] == "output of the model"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_on_a_gpu_and_back() -> None:
    model = mlp()
    model.first.weight.grad = torch.ones_like(model.first.weight)
    before, state = snapshot(model), torch.cuda.get_rng_state()
    found = from_model(model, batches(), device="cuda")
    assert_same(before, snapshot(model))
    assert torch.equal(state, torch.cuda.get_rng_state())
    assert model.first.weight.grad.device.type == "cpu"
    np.testing.assert_allclose(found.vectors, from_model(model, batches()).vectors, atol=1e-4)


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_fingerprint_is_of_names_types_shapes_and_bytes() -> None:
    model = nn.Linear(2, 1)
    digest = hashlib.sha256()
    for name in ("bias", "weight"):
        value = getattr(model, name).detach().numpy()
        digest.update(f"{name} torch.float32 {value.shape}\n".encode() + value.tobytes())
    assert fingerprint(model) == digest.hexdigest()


def test_fingerprint_tells_models_apart() -> None:
    model = mlp()
    seen = {fingerprint(model)}
    with torch.no_grad():
        model.head.bias[0] = torch.nextafter(model.head.bias[0], torch.tensor(9.0))
    seen.add(fingerprint(model))
    model.norm.num_batches_tracked += 1
    seen.add(fingerprint(model))
    seen.add(fingerprint(model.bfloat16()))
    assert len(seen) == 4
    assert fingerprint(model) == fingerprint(model.train())
