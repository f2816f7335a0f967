"""Downloads from a real HTTP server on this machine, which cuts, lies, forgets and refuses as real ones do."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import layouts
from vicinal.data import fetch, load
from vicinal.data.catalog import CATALOG, Download
from vicinal.errors import FileError, InputError, MissingDataError, MissingExtraError


class Server(ThreadingHTTPServer):
    """Serves ``files`` by name; ``plan`` says how each of the next requests goes wrong, the last entry for good."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.plan: list[str] = ["well"]
        self.asked: list[tuple[str, str | None]] = []
        self.patience = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data/"

    def fault(self) -> str:
        return self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        asked = self.headers.get("Range")
        fault = self.server.fault()
        self.server.asked.append((name, asked))
        body = self.server.files.get(name)
        if fault == "silent":
            self.server.patience.wait(30)
        if fault == "broken" or body is None:
            self.send_error(503 if fault == "broken" else 404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and "no ranges" not in fault else 0
        body = b"<html>moved</html>" if fault == "another page" else body[start:]
        self.send_response(206 if start else 200)
        if start:
            total = start + len(body)
            claimed = 1 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {claimed}-{total - 1}/{total}")
        if name.endswith(".gz"):
            self.send_header("Content-Encoding", "x-gzip")  # as many servers say of files that are packed already
        body += b"more" if fault == "too much" else b""
        if fault not in ("no length", "too much"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = fault in ("cut", "no length", "cut, no ranges")
        self.wfile.write(body[: len(body) // 2] if half else b"" if fault == "nothing" else body)
        if half or fault in ("nothing", "too much"):
            self.close_connection = True


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.patience.set()
    running.shutdown()
    thread.join()
    running.server_close()


def offer(server, monkeypatch, name, files, *, members=None):
    """Let the catalog expect exactly these files, as if they were the official ones, and let the server have them."""
    downloads = tuple(
        Download(file, len(content), hashlib.sha256(content).hexdigest(), (server.address,), members or {})
        for file, content in files.items()
    )
    monkeypatch.setitem(CATALOG, name, dataclasses.replace(CATALOG[name], downloads=downloads))
    server.files |= files


@pytest.fixture
def mnist(server, monkeypatch, tmp_path):
    """Four files that are kept as they come."""
    folder = layouts.mnist(tmp_path / "origin")
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    offer(server, monkeypatch, "mnist", files)
    return files


def archive(folder, *, extra=()) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for entry in extra:
            tar.addfile(*entry)
        tar.add(folder, folder.name)
    return packed.getvalue()


@pytest.fixture
def cifar100(server, monkeypatch, tmp_path):
    """An archive to unpack two files from; it holds others, some of them hostile."""
    folder = layouts.cifar100(tmp_path / "origin", n=40)
    members = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / "fine_label_names.txt").write_text("apple\n")
    escape, link = tarfile.TarInfo("../escaped.bin"), tarfile.TarInfo("cifar-100-binary/test.bin")
    escape.size, link.type, link.linkname = 4, tarfile.SYMTYPE, "/etc/passwd"
    content = archive(folder, extra=[(escape, io.BytesIO(b"evil")), (link,)])
    offer(server, monkeypatch, "cifar100", {"cifar-100-binary.tar.gz": content}, members=members)
    return content


def everything(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_files_arrive_as_they_are(server, mnist, tmp_path):
    place = fetch("mnist", tmp_path / "root")
    assert place == tmp_path / "root" / "mnist"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == mnist
    np.testing.assert_array_equal(load("mnist", root=tmp_path / "root").train.labels, layouts.labels(10, 10))


def test_what_is_there_is_not_fetched_again(server, mnist, cifar100, tmp_path):
    for name in ("mnist", "cifar100"):
        fetch(name, tmp_path / "root")
        server.asked.clear()
        fetch(name, tmp_path / "root")
        assert server.asked == []


def test_only_the_missing_file_is_fetched_into_the_folder_where_the_others_are(server, mnist, tmp_path):
    folder = tmp_path / "root" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name in list(mnist)[1:]:
        (folder / name).write_bytes(mnist[name])
    assert fetch("mnist", tmp_path / "root") == folder
    assert [name for name, _ in server.asked] == [next(iter(mnist))]


def test_files_unpacked_by_hand_are_taken_as_they_are(server, mnist, tmp_path):
    folder = tmp_path / "root" / "mnist"
    folder.mkdir(parents=True)
    for name, content in mnist.items():
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress(content))
    fetch("mnist", tmp_path / "root")
    assert server.asked == []


def test_an_archive_gives_the_files_that_are_read_and_nothing_else(server, cifar100, tmp_path):
    root = tmp_path / "root"
    fetch("cifar100", root)
    assert everything(tmp_path / "root") == ["cifar-100-binary/test.bin", "cifar-100-binary/train.bin"]
    assert not (tmp_path / "escaped.bin").exists()
    assert not (root / "cifar-100-binary" / "test.bin").is_symlink()
    np.testing.assert_array_equal(load("cifar100", root=root).train.images, layouts.pixels(40, 32, 3, 1))


@pytest.mark.parametrize("fault", ["cut", "no length"])
def test_a_connection_that_breaks_off_is_resumed_where_it_broke(fault, server, cifar100, tmp_path):
    server.plan = [fault, fault, "well"]
    fetch("cifar100", tmp_path / "root")
    size = len(cifar100)
    half = size // 2
    quarter = half + (size - half) // 2
    name = "cifar-100-binary.tar.gz"
    assert server.asked == [(name, None), (name, f"bytes={half}-"), (name, f"bytes={quarter}-")]
    assert len(load("cifar100", root=tmp_path / "root").test) == 40


def test_a_call_that_failed_is_resumed_by_the_next(server, cifar100, tmp_path):
    root = tmp_path / "root"
    server.plan = ["cut", "broken"]
    with pytest.raises(MissingDataError, match=f"503 .*{len(cifar100) // 2:,} of {len(cifar100):,} bytes wait in"):
        fetch("cifar100", root)
    assert everything(root) == ["cifar-100-binary.tar.gz.part"]
    server.plan = ["well"]
    server.asked.clear()
    fetch("cifar100", root)
    assert server.asked == [("cifar-100-binary.tar.gz", f"bytes={len(cifar100) // 2}-")]
    assert everything(root) == ["cifar-100-binary/test.bin", "cifar-100-binary/train.bin"]


@pytest.mark.parametrize("fault", ["no ranges", "wrong range"])
def test_a_server_that_cannot_resume_sends_everything_again(fault, server, mnist, tmp_path):
    name = next(iter(mnist))
    folder = tmp_path / "root" / "mnist"
    folder.mkdir(parents=True)
    (folder / f"{name}.part").write_bytes(mnist[name][:100])
    if fault == "wrong range":
        server.files[name] = mnist[name][:100] + mnist[name]  # so that the body it sends from 100 on is the whole file
    server.plan = [fault, "well"]
    fetch("mnist", tmp_path / "root")
    assert server.asked[0] == (name, "bytes=100-")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == mnist


def test_a_server_that_always_breaks_off_and_cannot_resume_is_given_up(server, mnist, tmp_path):
    server.plan = ["cut, no ranges"]
    with pytest.raises(MissingDataError, match="the connection broke off"):
        fetch("mnist", tmp_path / "root")
    assert len(server.asked) == 2


def test_a_server_that_sends_nothing_is_given_up(server, mnist, tmp_path):
    server.plan = ["nothing"]
    with pytest.raises(MissingDataError, match="the connection broke off"):
        fetch("mnist", tmp_path / "root")
    assert len(server.asked) == 1


def test_the_part_of_another_file_is_found_out_and_begun_anew(server, mnist, tmp_path):
    name = next(iter(mnist))
    part = tmp_path / "root" / "mnist" / f"{name}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 50)
    fetch("mnist", tmp_path / "root")
    assert server.asked[:2] == [(name, "bytes=50-"), (name, None)]
    assert (part.parent / name).read_bytes() == mnist[name]


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_part_that_is_whole_or_too_long_is_not_asked_for_again(beyond, server, mnist, tmp_path):
    name = next(iter(mnist))
    part = tmp_path / "root" / "mnist" / f"{name}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(mnist[name] + b"x" * beyond)
    fetch("mnist", tmp_path / "root")
    assert [asked for asked in server.asked if asked[0] == name] == [(name, None)] * beyond
    assert (part.parent / name).read_bytes() == mnist[name]


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(server, mnist, tmp_path):
    name = next(iter(mnist))
    server.files[name] = bytes(len(mnist[name]))
    with pytest.raises(
        MissingDataError, match=rf"{name}, got http://.*: the sha256 is not the official one; try again"
    ):
        fetch("mnist", tmp_path / "root")
    assert everything(tmp_path / "root") == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [("another page", "18 bytes offered"), ("broken", "503 Server Error"), ("silent", "no answer in time")],
)
def test_another_answer_than_the_file_is_refused(fault, says, server, mnist, tmp_path, monkeypatch):
    monkeypatch.setattr("vicinal.data.fetching._TIMEOUT", (5, 0.2))
    server.plan = [fault]
    with pytest.raises(MissingDataError, match=rf"{says}.*http://yann\.lecun\.com/exdb/mnist/ into"):
        fetch("mnist", tmp_path / "root")
    assert everything(tmp_path / "root") == []


def test_more_than_the_file_is_refused(server, mnist, tmp_path):
    server.plan = ["too much"]
    size = len(next(iter(mnist.values())))
    with pytest.raises(MissingDataError, match=f"more than {size:,} bytes came"):
        fetch("mnist", tmp_path / "root")
    server.plan = ["well"]
    fetch("mnist", tmp_path / "root")
    assert {path.name: path.read_bytes() for path in (tmp_path / "root" / "mnist").iterdir()} == mnist


def test_a_file_that_is_not_on_the_server_is_named(server, mnist, tmp_path):
    name = sorted(mnist)[2]
    del server.files[name]
    with pytest.raises(
        MissingDataError, match=rf"mnist: expected to fetch {name}, got http://127.*{name}: 404 Client Error"
    ):
        fetch("mnist", tmp_path / "root")
    assert name not in " ".join(everything(tmp_path / "root"))


def test_no_connection_at_all_is_said_in_two_words(server, mnist, tmp_path):
    with pytest.raises(MissingDataError, match=r"ubyte\.gz: no connection; try again"):
        fetch("mnist", tmp_path / "root", addresses=["http://127.0.0.1:9/"])


def test_the_next_address_is_tried_where_one_fails(server, mnist, tmp_path):
    fetch("mnist", tmp_path / "root", addresses=["http://127.0.0.1:9/", server.address])
    assert {path.name: path.read_bytes() for path in (tmp_path / "root" / "mnist").iterdir()} == mnist


def test_a_mirror_takes_the_place_of_the_official_address_and_the_checksum_stays(server, mnist, tmp_path):
    server.files = {name: content + b"x" for name, content in mnist.items()}
    with pytest.raises(MissingDataError, match="bytes offered"):
        fetch("mnist", tmp_path / "root", addresses=[server.address.rstrip("/")])


@pytest.mark.parametrize("name", ["svhn", "cifar100"])
def test_a_file_of_your_own_in_the_way_is_left_alone(name, server, cifar100, tmp_path):
    root = tmp_path / "root"
    own = layouts.svhn(root) / "train_32x32.mat" if name == "svhn" else layouts.cifar100(root, n=1) / "test.bin"
    before = own.read_bytes()
    with pytest.raises(FileError, match=rf"{own.name}: expected the official file, .* move it away first"):
        fetch(name, root)
    assert own.read_bytes() == before
    assert server.asked == []


def test_an_archive_put_there_by_hand_is_unpacked(server, cifar100, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "cifar-100-binary.tar.gz").write_bytes(cifar100)
    fetch("cifar100", root)
    assert server.asked == []
    assert everything(root) == ["cifar-100-binary/test.bin", "cifar-100-binary/train.bin"]


def test_unpacking_that_was_interrupted_is_done_again_without_a_download(server, cifar100, tmp_path, monkeypatch):
    root = tmp_path / "root"
    real = tarfile.TarFile.extractfile
    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "extractfile", lambda tar, entry: interrupted(real, tar, entry))
        with pytest.raises(KeyboardInterrupt):
            fetch("cifar100", root)
    assert everything(root) == ["cifar-100-binary.tar.gz", "cifar-100-binary/test.bin"]
    server.asked.clear()
    fetch("cifar100", root)
    assert server.asked == []
    assert everything(root) == ["cifar-100-binary/test.bin", "cifar-100-binary/train.bin"]


def interrupted(real, tar, entry):
    if entry.name.endswith("train.bin"):
        raise KeyboardInterrupt
    return real(tar, entry)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"no archive", "expected an archive, got one that cannot be read"), (None, "got an archive without them")],
)
def test_an_official_archive_that_does_not_hold_the_files_is_refused(content, says, server, monkeypatch, tmp_path):
    (tmp_path / "cifar-100-binary").mkdir()
    content = content or archive(tmp_path / "cifar-100-binary")
    offer(server, monkeypatch, "cifar100", {"c.tar.gz": content}, members={"train.bin": 3074})
    with pytest.raises(FileError, match=rf"c\.tar\.gz: .*{says}"):
        fetch("cifar100", tmp_path / "root")


def test_a_root_that_cannot_be_written_is_said(server, mnist, tmp_path):
    (tmp_path / "root").write_text("a file, not a folder")
    with pytest.raises(FileError, match="expected to write mnist there, got:"):
        fetch("mnist", tmp_path / "root")


def test_a_full_disk_leaves_what_was_there(server, mnist, tmp_path, monkeypatch):
    def full(source, goal):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("vicinal.data.fetching.os.replace", full)
    with pytest.raises(FileError, match="No space left on device"):
        fetch("mnist", tmp_path / "root")
    assert not any((tmp_path / "root" / "mnist" / name).exists() for name in mnist)


def test_a_name_that_cannot_be_fetched_is_refused(tmp_path):
    with pytest.raises(InputError, match="did you mean 'cifar10"):
        fetch("cifar-10", tmp_path)


def test_without_pooch_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vicinal\[fetch\]'"):
        fetch("mnist", tmp_path)


def test_the_catalog_is_sound():
    for known in CATALOG.values():
        for download in known.downloads:
            assert len(bytes.fromhex(download.sha256)) == 32
            assert all(address.startswith("http") and address.endswith("/") for address in download.addresses)
        members = [member for download in known.downloads for member in download.members or [download.name]]
        assert sorted(members) == sorted(known.files)
    assert len({download.sha256 for known in CATALOG.values() for download in known.downloads}) == 13


def test_the_official_sizes_are_those_of_the_official_counts():
    for name, record in (("cifar100", 3074), ("cifar10", 3073)):
        sizes = CATALOG[name].downloads[0].members
        assert sum(sizes.values()) == record * sum(CATALOG[name].counts)
    sizes, (train, test) = CATALOG["stl10"].downloads[0].members, CATALOG["stl10"].counts
    assert sizes == {"train_X.bin": 27648 * train, "train_y.bin": train, "test_X.bin": 27648 * test, "test_y.bin": test}
