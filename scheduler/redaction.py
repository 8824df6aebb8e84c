"""Secrets are kept out of recordings, in both directions, before anything is written.

Three fences, one behind the other:

1. of headers only those on an allow-list are kept, so that an unknown one is never stored;
2. every secret that is known is replaced by its name, in each of the forms in which it may stand:
   plain, escaped for JSON, for a URL or a form, in base64 at any of its three alignments, in hex,
   and within gzip;
3. what is left is looked through once more, for those forms and for what looks like a credential
   of a known kind. If anything is found the write is blocked.

The same is done with the request of a replay, so that it still matches what was recorded.
"""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote, quote_plus

from ..validators.errors import SecretFound
from .recording import Exchange

ALLOWED_HEADERS = frozenset(
    {
        "accept",
        "content-encoding",
        "content-language",
        "content-length",
        "content-type",
        "date",
        "etag",
        "last-modified",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "retry-after",
    }
)
# A shorter one cannot be told from other text, least of all a piece of it in base64.
_SHORTEST = 8
_GZIP = b"\x1f\x8b"
# Credentials that tell themselves by how they begin.
_KNOWN_KINDS = {
    "private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "bearer token": rb"(?i)\bbearer +[A-Za-z0-9._~+/-]{20,}",
    "cloud access key": rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "API key": rb"\bsk-[A-Za-z0-9_-]{20,}",
    "repository token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    "web token": rb"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}


class Redactor:
    """Replaces secrets by their names.

    Args:
        secrets: values by name; the name is what stands in a recording.
        allowed_headers: names of headers, in lower case, that may be kept.
    """

    def __init__(
        self, secrets: Mapping[str, str], *, allowed_headers: Collection[str] = ALLOWED_HEADERS
    ) -> None:
        for name, value in secrets.items():
            if (size := len(value.encode())) < _SHORTEST:
                raise ValueError(
                    f"secret {name!r} has {size} bytes: below {_SHORTEST} it cannot be told from"
                    " other text"
                )
        self._forms = sorted(
            {(form, name) for name, value in secrets.items() for form in forms(value)},
            key=lambda pair: (-len(pair[0]), pair),
        )
        self._allowed = frozenset(allowed_headers)

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that may be kept, names in lower case, secrets replaced."""
        return {
            name.lower(): self.clean(value.encode()).decode("utf-8", "replace")
            for name, value in given.items()
            if name.lower() in self._allowed
        }

    def exchange(self, exchange: Exchange) -> Exchange:
        """Return an exchange that may be written; raises SecretFound if it may not."""
        return replace(
            exchange,
            tool=self.clean(exchange.tool.encode()).decode(),
            request=self.clean(exchange.request),
            response=self.clean(exchange.response),
        )

    def clean(self, content: bytes) -> bytes:
        """Return content without secrets, the same bytes where there were none.

        Raises SecretFound if something is left that looks like one.
        """
        inner = _unzipped(content)
        if inner is not None:
            cleaned = self._checked(self._replaced(inner))
            return content if cleaned == inner else gzip.compress(cleaned, mtime=0)
        return self._checked(self._replaced(content))

    def _replaced(self, content: bytes) -> bytes:
        for form, name in self._forms:
            if form in content:
                content = content.replace(form, f"[secret {name}]".encode())
        return content

    def _checked(self, content: bytes) -> bytes:
        for form, name in self._forms:
            if form in content:
                raise SecretFound(f"secret {name!r} is still in what would be written")
        for kind, pattern in _KNOWN_KINDS.items():
            if found := re.search(pattern, content):
                raise SecretFound(
                    f"byte {found.start()} of what would be written begins what looks like a"
                    f" {kind}: name it as a secret, or leave it out"
                )
        return content


def forms(value: str) -> Iterator[bytes]:
    """Yield the forms in which a secret may stand in a request or an answer."""
    data = value.encode()
    yield data
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode()
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield quoted.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), quoted).encode()
    yield data.hex().encode()
    yield data.hex().upper().encode()
    for before in range(3):
        yield from _in_base64(data, before)


def _in_base64(data: bytes, before: int) -> Iterator[bytes]:
    """Yield what is the same in base64 whatever stands around, at one of three alignments.

    Three bytes make four characters; the first and the last of them may hold a neighbour's bits.
    """
    padded = b"\0" * before + data
    first = -(-before * 8 // 6)
    last = len(padded) * 8 // 6
    for spelled in (base64.b64encode(padded), base64.urlsafe_b64encode(padded)):
        yield spelled[first:last]


def _unzipped(content: bytes) -> bytes | None:
    """Return what a gzip body holds; None where it is none."""
    if not content.startswith(_GZIP):
        return None
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return None
