"""Users' own files: arrays in, by the names they have there; results out, as rows that any tool reads.

    in     .safetensors (vicinal's own, and any other)  .npz  .npy  a folder of .npy files  .parquet
    out    .csv  .parquet  .jsonl

The ending says what a file is, and the user says what its arrays are called. Nothing is guessed, and no code that a
file may hold is run.
"""

from vicinal.tables.reading import Names, read
from vicinal.tables.sources import Source, open_source
from vicinal.tables.writing import ENDINGS, check_target, plain, write

__all__ = ["ENDINGS", "Names", "Source", "check_target", "open_source", "plain", "read", "write"]
