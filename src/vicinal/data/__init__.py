"""Data sets: readers of the official files, folders of your own, downloads, and the validation split.

    load(name) -> DataSet          fetch(name)            available()            split(labels, share, seed)
    read it from the data root     bring it there         list what is there     cut a validation part from train

Plain NumPy throughout: nothing here needs torch.
"""

from __future__ import annotations

from vicinal.data.dataset import DataSet, Images
from vicinal.data.fetching import fetch
from vicinal.data.loading import Holding, available, data_root, load
from vicinal.data.splitting import split

__all__ = ["DataSet", "Holding", "Images", "available", "data_root", "fetch", "load", "split"]
