"""Bring a data set from its official site: resumed where it broke off, checked, unpacked, never half a file.

Pooch checks the sha256 and puts a file in its place only when it is whole; the resuming is done here, because pooch
begins every download anew. What has arrived so far waits beside the goal as ``NAME.part``.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from vicinal import checks, store
from vicinal.data.catalog import CATALOG, Download, Known
from vicinal.data.loading import data_root, standing
from vicinal.data.readers import held
from vicinal.errors import FileError, MissingDataError, require
from vicinal.progress import track

__all__ = ["fetch"]

_log = logging.getLogger(__name__)
_PIECE = 2**20  # bytes written in one go
_TIMEOUT = (15, 60)  # seconds to wait for a connection, and for the next bytes
_AGENT = "vicinal (https://pypi.org/project/vicinal)"


def fetch(name: str, root: str | Path | None = None, *, addresses: Sequence[str] | None = None) -> Path:
    """Download a data set into the data root, unless it is there.

    A file takes its name only when it is whole and its sha256 is the official one. A download that breaks off is
    resumed, at once or by the next call. Of an archive, the files that are read are unpacked and the archive is
    removed. A data file that is there but is not the official one is left alone: the error says so.

    Args:
        name: a data set that vicinal knows; see :func:`vicinal.data.load`.
        root: the data root; see :func:`vicinal.data.data_root`.
        addresses: folders on the web to look in instead of the official ones, such as a mirror. The checksum stays.

    Returns:
        The folder that holds the files.
    """
    known = CATALOG[checks.one_of(name, "name", tuple(CATALOG))]
    base = data_root(root)
    place, missing = standing(known, base)
    if len(missing) == len(known.files):
        place = base / known.places[0]
    try:
        for download in known.downloads:
            _bring(known, download, base, place, tuple(addresses or download.addresses))
    except MissingDataError:
        raise
    except OSError as error:
        raise FileError(
            f"{place}: expected to write {known.name} there, got: {error}; what was there stays as it was"
        ) from error
    _log.info("%s is in %s", known.name, place)
    return place


def _bring(known: Known, download: Download, base: Path, place: Path, addresses: tuple[str, ...]) -> None:
    if not download.members:
        if not _is_official(place, download):
            _retrieve(known, download, place, addresses)
        return
    if not _is_unpacked(place, download):
        archive = _retrieve(known, download, base, addresses)
        _unpack(archive, place, download)
        archive.unlink()


def _is_official(place: Path, download: Download) -> bool:
    """Whether the file is there; one that is not the official one is refused."""
    path = held(place, download.name)
    if path is None:
        return False
    if path.name == download.name and _pooch().file_hash(str(path)) != download.sha256:
        raise FileError(
            f"{path}: expected the official file, sha256 {download.sha256}, got another; move it away first"
        )
    return True


def _is_unpacked(place: Path, download: Download) -> bool:
    """Whether every file of an archive is there; one of another size is refused."""
    for member, size in download.members.items():
        path = place / member
        if path.exists() and path.stat().st_size != size:
            raise FileError(f"{path}: expected the official file, {size:,} bytes, got another; move it away first")
    return all((place / member).exists() for member in download.members)


def _retrieve(known: Known, download: Download, folder: Path, addresses: tuple[str, ...]) -> Path:
    """The whole, checked file from the first address that has it."""
    requests = _requests()
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{download.name}.part"
    tried = []
    for address in addresses:
        url = f"{address.rstrip('/')}/{download.name}"
        for _ in range(2):  # a part that another file left is found out by its checksum, and then begun anew
            resumed = part.exists()
            try:
                return _retrieved(url, download, folder, part)
            except (requests.RequestException, ValueError) as error:
                tried.append(f"{url}: {_reason(error)}")
                if not (resumed and isinstance(error, ValueError) and not part.exists()):
                    break
    kept = f"{part.stat().st_size:,} of {download.size:,} bytes wait in {part} to be resumed; " if part.exists() else ""
    raise MissingDataError(
        f"{known.name}: expected to fetch {download.name}, got {'; '.join(tried)}; {kept}"
        f"try again, or get it by hand from {known.homepage} into {folder} and then try again"
    )


def _retrieved(url: str, download: Download, folder: Path, part: Path) -> Path:
    """Ask pooch for the file; it calls back for the bytes, checks them and renames."""

    def bring(address: str, output_file: str, _: Any) -> None:
        _complete(address, part, download)
        os.replace(part, output_file)

    pooch = _pooch()
    known_hash = f"sha256:{download.sha256}"
    return Path(pooch.retrieve(url, known_hash, fname=download.name, path=folder, downloader=bring))


def _pooch() -> Any:
    pooch = require("pooch", "fetch", "fetching data")
    pooch.get_logger().setLevel("WARNING")
    return pooch


def _complete(url: str, part: Path, download: Download) -> None:
    """Add to the part until it has all its bytes, for as long as every connection brings some more."""
    requests = _requests()
    if part.exists() and part.stat().st_size > download.size:
        part.unlink()
    while (begun := part.stat().st_size if part.exists() else 0) < download.size:
        try:
            _continue(url, part, begun, download)
        except requests.HTTPError:
            raise
        except requests.RequestException:
            if not part.exists() or part.stat().st_size <= begun:
                raise
            _log.warning("%s: the connection broke off; resuming at %s bytes", url, f"{part.stat().st_size:,}")


def _continue(url: str, part: Path, begun: int, download: Download) -> None:
    """One connection: ask for the bytes from ``begun`` on, and write what comes."""
    requests = _requests()
    headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    if begun:
        headers["Range"] = f"bytes={begun}-"
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
        response.raise_for_status()
        resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(
            f"bytes {begun}-"
        )
        start = begun if resumed else 0  # a server that knows no ranges sends the whole file again
        length = response.headers.get("Content-Length")
        if length is not None and start + int(length) != download.size:
            raise requests.RequestException(f"{start + int(length):,} bytes offered, {download.size:,} expected")
        with part.open("r+b" if resumed else "wb") as file:
            file.seek(start)
            _write(response, file, download, start)


def _write(response: Any, file: IO[bytes], download: Download, start: int) -> None:
    pieces = _pieces(response)
    total = math.ceil((download.size - start) / _PIECE)
    have = start
    for piece in track(pieces, f"fetching {download.name} (MiB)", total=total):
        file.write(piece)
        have += len(piece)
    if have < download.size:
        raise _requests().ConnectionError(f"{have:,} of {download.size:,} bytes came")
    if have > download.size:
        raise ValueError(f"more than {download.size:,} bytes came")


def _pieces(response: Any) -> Iterator[bytes]:
    """The bytes as they are on the server: a file packed with gzip stays packed, whatever the server says of it."""
    errors = require("urllib3.exceptions", "fetch", "fetching data")
    try:
        yield from response.raw.stream(_PIECE, decode_content=False)
    except errors.HTTPError as error:
        raise _requests().ConnectionError(f"the connection broke off ({error})") from error


def _requests() -> Any:
    return require("requests", "fetch", "fetching data")


def _reason(error: Exception) -> str:
    """What went wrong with one address, in a few words."""
    text = str(error)
    if "does not match the known hash" in text:
        return "the sha256 is not the official one"
    if isinstance(error, _requests().Timeout):
        return "no answer in time"
    return "no connection" if "Max retries exceeded" in text else text.partition(" for url")[0]


def _unpack(archive: Path, place: Path, download: Download) -> None:
    """Write the files that are read, and nothing else, so that no name in the archive can lead out of the folder."""
    place.mkdir(parents=True, exist_ok=True)
    wanted = {f"{place.name}/{member}": member for member in download.members}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for entry in track(tar, f"unpacking {archive.name} (files)"):
                member = wanted.get(str(PurePosixPath(entry.name)))
                content = tar.extractfile(entry) if member and entry.isfile() else None
                if member and content is not None:
                    with store.replacing(place / member) as file:
                        shutil.copyfileobj(content, file, _PIECE)
    except (tarfile.TarError, EOFError) as error:
        raise FileError(
            f"{archive}: expected an archive, got one that cannot be read ({error}); fetch it again"
        ) from error
    if not _is_unpacked(place, download):
        raise FileError(
            f"{archive}: expected {', '.join(download.members)} in {place.name}/, got an archive without them"
        )
