"""``vicinal train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import options, show
from vicinal.cli.app import command

if TYPE_CHECKING:
    from vicinal.learn.recipe import Recipe
    from vicinal.learn.train import Trained

__all__ = ["train"]

_FILES = ("train", "validation", "test", "bank")


@command("vicinal train --dataset cifar100 --method distance")
def train(
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            metavar="NAME",
            show_default=False,
            help="A data set, as `vicinal data list` calls it, or a folder of your own.",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            show_default="reg, or as the recipe file says",
            help="reg (cross entropy), distance (Eq. 2) or adversarial (Eq. 3).",
        ),
    ] = None,
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE",
            help="compact (two cores), tuned or paper; or a .json file, such as one made with Recipe.to_json.",
        ),
    ] = "compact",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the network.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            show_default="dataset-method-seed",
            help="Write network, embeddings, bank and log there.",
        ),
    ] = None,
    data: options.DataRoot = None,
    validation: Annotated[
        float, typer.Option("--validation", metavar="P", help="The share of the training images to validate on.")
    ] = 0.1,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="Where to train: cpu, cuda, ...")] = "cpu",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the folder, or begin it; to the same bits.")
    ] = False,
    retries: Annotated[
        int,
        typer.Option("--retries", metavar="N", help="How often a run that diverges goes on at half the rate."),
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a network on a data set; leave it, its embeddings and its bank in a folder."""
    from vicinal.errors import require

    require("torch", "torch", "vicinal train")
    from vicinal.learn.train import train_dataset

    chosen = _recipe(recipe)
    place = out or Path(f"{Path(dataset).resolve().name}-{_method(chosen, method)}-{seed}")
    found = train_dataset(
        dataset,
        chosen,
        method,
        out=place,
        seed=seed,
        device=device,
        resume=resume,
        retries=retries,
        validation=validation,
        root=data,
    )
    content = _content(place, found)
    show.answer(_text(content), content, as_json)


def _recipe(word: str) -> str | Recipe:
    """The name of a recipe, or the recipe in a file."""
    if not word.endswith(".json"):
        return word
    from vicinal import store
    from vicinal.learn.recipe import Recipe

    return Recipe.from_json(store.read_json(word))


def _method(recipe: str | Recipe, method: str | None) -> str:
    return method or ("reg" if isinstance(recipe, str) else recipe.method)


def _content(place: Path, found: Trained) -> dict[str, Any]:
    parts = {name: getattr(found, name) for name in _FILES[:3] if getattr(found, name) is not None}
    network = found.network
    return {
        "folder": str(place),
        "dataset": network.facts.get("data"),
        "method": network.recipe.method,
        "recipe": network.recipe.name,
        "seed": int(network.facts["seed"]),
        "steps": network.metrics["steps"],
        "images": {name: len(part) for name, part in parts.items()},
        "accuracy": {name: float(part.correct.mean()) for name, part in parts.items()},
        "files": {name: str(place / f"{name}.safetensors") for name in (*parts, "bank")},
        "fingerprint": network.fingerprint,
    }


def _text(content: dict[str, Any]) -> str:
    counts, accuracy, files = content["images"], content["accuracy"], content["files"]
    said = ", ".join(f"{accuracy[name]:.3f} on {counts[name]:,} {name} images" for name in counts)
    return "\n".join(
        [
            f"{content['folder']}: {content['dataset']}, {content['method']}, {content['steps']:,} steps",
            f"accuracy: {said}",
            f"next: vicinal evaluate {files['test']} --bank {files['bank']}",
        ]
    )
