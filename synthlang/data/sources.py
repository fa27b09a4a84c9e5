"""Sources of data sets: the hub, addresses, a Git repository, OPUS, a person, or another data set.

A source of the first four kinds is a list of files at a revision. Each file has a name, which conversions refer to, and
a place in the folder of downloads, which a mirror has as well::

    hub/OWNER/NAME/REVISION/PATH       a file of the hub
    url/HOST/PATH                      a file at an address
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator

from synthlang.config import StrictModel
from synthlang.hub_upload import check_repository

REVISION = re.compile("[0-9a-f]{40}")
RAW = "https://raw.githubusercontent.com"
OPUS = "https://object.pouta.csc.fi"
CHANGED = "install a newer version of synthlang, because the data set has changed"
"""Hint of errors about a data set of the hub that the catalogue does not describe."""
OTHER = f"with --from, replace this file of the mirror; otherwise {CHANGED}"
"""Hint of errors about the content of a file that the catalogue does not describe."""
ANEW = "run the same command again; with --from, replace this file of the mirror first"
"""Hint of errors about a damaged download, which ``fetch`` deletes unless it is in a mirror."""


@dataclass(frozen=True)
class UrlFile:
    """A file at an address.

    Attributes:
        name: The name that conversions use.
        url: The address.
        sha256: The known SHA-256 in hexadecimal, or None.
        first: Number of bytes to fetch from the start, or None for the whole file.
    """

    name: str
    url: str
    sha256: str | None = None
    first: int | None = None

    @property
    def has_checksum(self) -> bool:
        """True if a checksum is known before the download."""
        return self.sha256 is not None

    @property
    def place(self) -> str:
        """Path below the folder of downloads."""
        parts = urlsplit(self.url)
        path = [quote(part, safe="") for part in (parts.netloc, *parts.path.strip("/").split("/"))]
        query = f"={quote(parts.query, safe='')}" if parts.query else ""
        return "/".join(["url", *path]) + query + (f".first-{self.first}" if self.first else "")


class HubFiles(StrictModel):
    """Files of a data set on the hub, at one commit."""

    kind: Literal["hub"]
    """Files of a data set on the hub."""
    repo: str
    """OWNER/NAME."""
    revision: str | None = Field(default=None, pattern=REVISION.pattern)
    """The commit (default: the newest commit, which is then recorded)."""
    files: tuple[str, ...] = Field(min_length=1)
    """Patterns of the paths in the repository. Each must match a file."""

    @field_validator("repo")
    @classmethod
    def _check_repo(cls, repo: str) -> str:
        check_repository(repo)
        return repo

    @property
    def address(self) -> str:
        """The page of the data set."""
        return f"https://huggingface.co/datasets/{self.repo}"

    @property
    def version(self) -> str | None:
        """The pinned revision, or None."""
        return self.revision


class WebFiles(StrictModel):
    """Files at addresses."""

    kind: Literal["url"]
    """Files at addresses."""
    urls: tuple[Annotated[str, Field(pattern="^https?://[^/]+/")], ...] = Field(min_length=1)
    """The addresses."""
    sha256: Mapping[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] = {}
    """The SHA-256 of each file whose checksum is known, by the last part of the address."""
    first: int | None = Field(default=None, ge=1)
    """Number of bytes to fetch from the start of each file (default: the whole file)."""

    @property
    def address(self) -> str:
        """The first address."""
        return self.urls[0]

    @property
    def version(self) -> str | None:
        """The first known checksum, or None."""
        return next(iter(self.sha256.values()), None)

    @property
    def remote(self) -> list[UrlFile]:
        """The files at the addresses."""
        named = ((url.rpartition("/")[2], url) for url in self.urls)
        return [UrlFile(name, url, self.sha256.get(name), self.first) for name, url in named]


class GitFiles(StrictModel):
    """Files of a public repository on GitHub, at a commit, a tag or a branch."""

    kind: Literal["git"]
    """Files of a repository on GitHub."""
    repo: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    """OWNER/NAME."""
    commit: str
    """The commit, tag or branch."""
    files: tuple[str, ...] = Field(min_length=1)
    """The paths in the repository."""
    commits: Mapping[str, str] = {}
    """Another commit for some of the paths."""

    @property
    def address(self) -> str:
        """The page of the repository."""
        return f"https://github.com/{self.repo}"

    @property
    def version(self) -> str | None:
        """The commit, tag or branch."""
        return self.commit

    @property
    def remote(self) -> list[UrlFile]:
        """The files of the repository, at their addresses."""
        return [
            UrlFile(path, f"{RAW}/{self.repo}/{self.commits.get(path, self.commit)}/{quote(path)}")
            for path in self.files
        ]


class OpusFiles(StrictModel):
    """A pair of languages of a corpus of OPUS, in the layout of Moses: a zip file with a text of each language."""

    kind: Literal["opus"]
    """A pair of languages of a corpus of OPUS."""
    corpus: str
    """The corpus, such as Europarl."""
    release: str
    """The version of the corpus, such as v8."""
    pair: str = Field(pattern="^[a-z]{2}-[a-z]{2}$")
    """The languages in alphabetical order, such as de-en."""

    @property
    def address(self) -> str:
        """The address of the file."""
        return f"{OPUS}/OPUS-{self.corpus}/{self.release}/moses/{self.pair}.txt.zip"

    @property
    def version(self) -> str | None:
        """The version of the corpus."""
        return self.release

    @property
    def remote(self) -> list[UrlFile]:
        """List of the one zip file of the pair of languages."""
        return [UrlFile(f"{self.pair}.txt.zip", self.address)]


class ByHand(StrictModel):
    """Data that nobody may pass on. A person obtains it and puts it into the folder."""

    kind: Literal["hand"]
    """Data that a person has to obtain."""
    obtain: str
    """Instructions for obtaining the data."""
    layout: str
    """The files that the folder must have."""
    splits: tuple[Literal["train", "dev", "test"], ...] = ()
    """Splits that the folder must have (default: the splits of the free source at the size ``lab``)."""

    @property
    def address(self) -> str:
        """Instructions for obtaining the data."""
        return self.obtain

    @property
    def version(self) -> str | None:
        """None, because the data have no version."""
        return None


class MadeOf(StrictModel):
    """A data set that a step makes of another data set."""

    kind: Literal["made"]
    """Made of another data set."""
    base: str
    """The name of the other data set."""

    @property
    def address(self) -> str:
        """Text that names the other data set, in place of an address."""
        return f"made of {self.base}"

    @property
    def version(self) -> str | None:
        """None, because the data have no version."""
        return None


Source = Annotated[
    HubFiles | WebFiles | GitFiles | OpusFiles | ByHand | MadeOf,
    Field(discriminator="kind"),
]
