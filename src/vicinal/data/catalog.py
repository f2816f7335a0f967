"""The data sets that vicinal knows by name: where their sites keep them, how large they are, what they show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vicinal.data import readers
from vicinal.data.readers import Pair

__all__ = ["CATALOG", "Download", "Known"]


@dataclass(frozen=True)
class Download:
    """One file on a site.

    Attributes:
        name: what the file is called.
        size: how many bytes it has.
        sha256: the checksum of its bytes.
        addresses: the folders it is in on the web: the official one first, then mirrors.
        members: for an archive, the files to unpack from it and the bytes of each.
    """

    name: str
    size: int
    sha256: str
    addresses: tuple[str, ...]
    members: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """One data set.

    Attributes:
        name: what users call it.
        title: what its authors call it.
        places: the folders under the data root that may hold its files; ``vicinal data fetch`` writes to the first.
        files: the files that must be there.
        downloads: where the files come from.
        read: the reader of such a folder.
        counts: how many images the official set has to train on and to test on.
        class_names: the name of each class.
        homepage: the site of the authors.
        licence: what the authors allow.
        notes: what whoever prints a result must know.
    """

    name: str
    title: str
    places: tuple[str, ...]
    files: tuple[str, ...]
    downloads: tuple[Download, ...]
    read: Callable[[Path], Pair]
    counts: tuple[int, int]
    class_names: tuple[str, ...]
    homepage: str
    licence: str
    notes: str = ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
_STANFORD_DIGITS = ("http://ufldl.stanford.edu/housenumbers/",)
_STANFORD_STL = ("http://ai.stanford.edu/~acoates/stl10/",)
_ZALANDO = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_LECUN = (
    "http://yann.lecun.com/exdb/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",  # the mirror of torchvision
    "https://storage.googleapis.com/cvdf-datasets/mnist/",  # the mirror of TensorFlow Datasets
)
_DIGITS = tuple("0123456789")
_THINGS = _words("airplane automobile bird cat deer dog frog horse ship truck")
_STL_THINGS = _words("airplane bird car cat deer dog horse monkey ship truck")
_CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_FINE = _words(
    """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
    castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
    elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
    lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
    pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
    shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
    television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"""
)
_NO_LICENCE = "none stated; cite Krizhevsky, Learning multiple layers of features from tiny images, 2009"
_IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)

_cifar10_files = (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin")
_stl10_files = {"train_X.bin": 138_240_000, "train_y.bin": 5_000, "test_X.bin": 221_184_000, "test_y.bin": 8_000}

_cifar100 = Known(
    name="cifar100",
    title="CIFAR-100",
    places=("cifar-100-binary",),
    files=("train.bin", "test.bin"),
    downloads=(
        Download(
            "cifar-100-binary.tar.gz",
            168_513_733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            _TORONTO,
            {"train.bin": 153_700_000, "test.bin": 30_740_000},
        ),
    ),
    read=readers.read_cifar100,
    counts=(50_000, 10_000),
    class_names=_FINE,
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence=_NO_LICENCE,
)
_cifar10 = Known(
    name="cifar10",
    title="CIFAR-10",
    places=("cifar-10-batches-bin",),
    files=_cifar10_files,
    downloads=(
        Download(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            _TORONTO,
            dict.fromkeys(_cifar10_files, 30_730_000),
        ),
    ),
    read=readers.read_cifar10,
    counts=(50_000, 10_000),
    class_names=_THINGS,
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    licence=_NO_LICENCE,
)
_svhn = Known(
    name="svhn",
    title="SVHN, cropped digits",
    places=("svhn", "."),
    files=("train_32x32.mat", "test_32x32.mat"),
    downloads=(
        Download(
            "train_32x32.mat",
            182_040_794,
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            _STANFORD_DIGITS,
        ),
        Download(
            "test_32x32.mat",
            64_275_384,
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            _STANFORD_DIGITS,
        ),
    ),
    read=readers.read_svhn,
    counts=(73_257, 26_032),
    class_names=_DIGITS,
    homepage="http://ufldl.stanford.edu/housenumbers/",
    licence="for non-commercial use only; cite Netzer et al., Reading digits in natural images, 2011",
    notes="the 531,131 extra images are not used",
)
_stl10 = Known(
    name="stl10",
    title="STL-10",
    places=("stl10_binary",),
    files=tuple(_stl10_files),
    downloads=(
        Download(
            "stl10_binary.tar.gz",
            2_640_397_119,
            "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
            _STANFORD_STL,
            _stl10_files,
        ),
    ),
    read=readers.read_stl10,
    counts=(5_000, 8_000),
    class_names=_STL_THINGS,
    homepage="https://cs.stanford.edu/~acoates/stl10/",
    licence="none stated, and ImageNet's terms hold for its images; cite Coates et al., AISTATS 2011",
    notes="the 100,000 images without labels are not used",
)
_stl10_32 = Known(
    name="stl10-32",
    title="STL-10, reduced to 32 x 32",
    places=_stl10.places,
    files=_stl10.files,
    downloads=_stl10.downloads,
    read=partial(readers.read_stl10, reduced=True),
    counts=_stl10.counts,
    class_names=_stl10.class_names,
    homepage=_stl10.homepage,
    licence=_stl10.licence,
    notes=f"each 3 x 3 pixels replaced by their mean; {_stl10.notes}",
)
_mnist = Known(
    name="mnist",
    title="MNIST",
    places=("mnist", "MNIST/raw"),
    files=_IDX_FILES,
    downloads=tuple(
        Download(name, size, sha256, _LECUN)
        for name, size, sha256 in zip(
            _IDX_FILES,
            (9_912_422, 28_881, 1_648_877, 4_542),
            (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
            strict=True,
        )
    ),
    read=readers.read_idx,
    counts=(60_000, 10_000),
    class_names=_DIGITS,
    homepage="http://yann.lecun.com/exdb/mnist/",
    licence="CC BY-SA 3.0; cite LeCun et al., Gradient-based learning applied to document recognition, 1998",
)
_fashion = Known(
    name="fashion-mnist",
    title="Fashion-MNIST",
    places=("fashion-mnist", "FashionMNIST/raw"),
    files=_IDX_FILES,
    downloads=tuple(
        Download(name, size, sha256, _ZALANDO)
        for name, size, sha256 in zip(
            _IDX_FILES,
            (26_421_880, 29_515, 4_422_102, 5_148),
            (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
            strict=True,
        )
    ),
    read=readers.read_idx,
    counts=(60_000, 10_000),
    class_names=_CLOTHES,
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT, Zalando SE",
)

CATALOG: dict[str, Known] = {
    known.name: known for known in (_cifar10, _cifar100, _fashion, _mnist, _stl10, _stl10_32, _svhn)
}
