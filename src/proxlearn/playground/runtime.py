"""What runs the operators in the page: onnxruntime-web, as npm has it. It is not part of the
repository; `python -m proxlearn.playground.runtime` brings it in before a wheel is built, and
`proxlearn play` does where it is not there yet."""

import gzip
import io
import tarfile
import urllib.request
from hashlib import sha256
from pathlib import Path

from proxlearn.common.files import write_atomically
from proxlearn.errors import FileError

VERSION = "1.23.2"
ARCHIVE = f"onnxruntime-web-{VERSION}.tgz"
URL = f"https://registry.npmjs.org/onnxruntime-web/-/{ARCHIVE}"
SHA256 = "0b8707d7efab9a2bea63564d66cad79e897cfd0bd627e5ae000488ffc1c45c7d"
FOLDER = Path(__file__).parent / "vendor"
SCRIPT, WASM, LICENSE = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm", "LICENSE"
MIT = """\
onnxruntime-web {version}, https://github.com/microsoft/onnxruntime

MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def runtime() -> dict[str, bytes]:
    """Its files, compressed by gzip, and its licence as it is; fetched once where they are not
    there."""
    names = (f"{SCRIPT}.gz", f"{WASM}.gz", LICENSE)
    if not all((FOLDER / name).is_file() for name in names):
        unpack(fetched())
    return {name: (FOLDER / name).read_bytes() for name in names}


def fetched() -> bytes:
    """The archive from npm's registry."""
    try:
        with urllib.request.urlopen(URL, timeout=60) as answer:
            return answer.read()
    except OSError as error:
        raise FileError(
            f"The playground runs operators by onnxruntime-web, which is not here yet, and "
            f"{URL} could not be read ({error}). Where there is a network, run "
            f"`npm pack onnxruntime-web@{VERSION}`; here, "
            f"`python -m proxlearn.playground.runtime {ARCHIVE}`."
        ) from None


def unpack(archive: bytes, folder: Path = FOLDER) -> None:
    """Keep of the archive, which is checked, what the page needs."""
    if (found := sha256(archive).hexdigest()) != SHA256:
        raise FileError(
            f"This is not {ARCHIVE}: its SHA-256 is {found}, not {SHA256}. Get the file again."
        )
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        for name in (SCRIPT, WASM):
            member = package.extractfile(f"package/dist/{name}")
            assert member is not None
            write_atomically(folder / f"{name}.gz", gzip.compress(member.read(), 9, mtime=0))
    write_atomically(folder / LICENSE, MIT.format(version=VERSION))


def main(arguments: list[str]) -> None:
    """Fetch it, or unpack an archive that is there."""
    unpack(Path(arguments[0]).read_bytes() if arguments else fetched())
    print(f"onnxruntime-web {VERSION}: {FOLDER}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
