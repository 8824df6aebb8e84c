"""No secret reaches a recording, and what is cleaned still replays."""

import base64
import gzip
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.scheduler.recording import Exchange, Recording, Replay
from rollbook.scheduler.redaction import Redactor
from rollbook.validators.errors import SecretFound

SECRET = 'cañary/"+ 7f3a=&9'  # noqa: S105 - planted, to be searched for
REDACTOR = Redactor({"canary": SECRET})
SECRETS = st.text(st.characters(codec="utf-8"), min_size=8, max_size=40)


def hidden(value: str, content: bytes) -> bool:
    """Return whether a search of content in all usual forms finds nothing of a value."""
    data = value.encode()
    needles = [
        data,
        quote(value).encode(),
        quote(value, safe="").encode(),
        quote_plus(value).encode(),
        json.dumps(value)[1:-1].encode(),
        base64.b64encode(data),
        base64.urlsafe_b64encode(data).rstrip(b"="),
        data.hex().encode(),
    ]
    return not any(needle in content for needle in needles)


def test_f47_a_secret_in_every_place_of_a_call_is_found_nowhere_in_what_is_stored() -> None:
    request = b"\n".join(
        [
            b"POST /v1/run?" + urlencode({"key": SECRET}).encode(),
            json.dumps({"token": SECRET, "nested": [f"a {SECRET} b"]}).encode(),
            urlencode({"form": SECRET}).encode(),
            base64.b64encode(f"user:{SECRET}".encode()),
        ]
    )
    response = json.dumps({"echo": SECRET, "note": "kept"}, ensure_ascii=False).encode()
    headers = {"Authorization": f"Bearer {SECRET}", "Set-Cookie": SECRET, "ETag": f'"{SECRET}"'}

    kept = REDACTOR.headers(headers)
    recording = Recording([REDACTOR.exchange(Exchange("http", request, response))])

    stored = recording.to_bytes()
    exchange = Recording.from_bytes(stored).exchanges[0]
    assert hidden(SECRET, stored)
    assert hidden(SECRET, exchange.request)
    assert hidden(SECRET, exchange.response)
    assert b"[secret canary]" in exchange.request
    assert b'"note": "kept"' in exchange.response
    assert kept == {"etag": '"[secret canary]"'}
    assert Replay(recording).answer("http", REDACTOR.clean(request)) == exchange


@given(SECRETS, st.binary(max_size=20), st.binary(max_size=20))
def test_a_secret_is_replaced_in_whatever_form_and_wherever_it_stands(
    secret: str, before: bytes, after: bytes
) -> None:
    whole = before + secret.encode() + after

    for spelled in (
        whole,
        base64.b64encode(whole),
        base64.urlsafe_b64encode(whole),
        before + whole.hex().encode(),
        before + quote(secret).encode() + after,
        before + quote_plus(secret, safe="").encode() + after,
        json.dumps([secret]).encode(),
        json.dumps([secret], ensure_ascii=False).encode(),
    ):
        cleaned = Redactor({"name": secret}).clean(spelled)

        assert b"[secret name]" in cleaned
        assert hidden(secret, cleaned)


@given(st.binary(max_size=400))
def test_what_holds_no_secret_is_the_same_to_the_byte(content: bytes) -> None:
    assert REDACTOR.clean(content) == content
    assert REDACTOR.clean(gzip.compress(content)) == gzip.compress(content)


def test_a_secret_within_gzip_is_replaced_and_the_rest_of_it_kept() -> None:
    body = gzip.compress(f"before {SECRET} after".encode())

    cleaned = REDACTOR.clean(body)

    assert gzip.decompress(cleaned) == b"before [secret canary] after"
    assert REDACTOR.clean(body[:-4]) == body[:-4]  # No gzip that could be read.


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"x -----BEGIN RSA PRIVATE KEY-----", "private key"),
        (b"Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "bearer token"),
        (b"AKIAABCDEFGHIJKLMNOP", "cloud access key"),
        (b"key=sk-abcdefghijklmnopqrstuvwxyz", "API key"),
        (b"ghp_" + b"a" * 36, "repository token"),
        (b"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJlMTIz", "web token"),
    ],
)
def test_what_looks_like_a_credential_blocks_the_write_and_is_not_told(
    content: bytes, kind: str
) -> None:
    for body in (content, gzip.compress(content)):
        with pytest.raises(SecretFound, match=f"looks like a {kind}: name it") as found:
            REDACTOR.exchange(Exchange("http", b"", body))

        assert content.decode()[-8:] not in str(found.value)


def test_a_header_that_nobody_allowed_is_not_kept_whatever_it_is_called() -> None:
    given_ = {"X-New-Auth": "v", "Cookie": "v", "Content-Type": "text/plain", "Retry-After": "3"}

    assert REDACTOR.headers(given_) == {"content-type": "text/plain", "retry-after": "3"}


def test_a_secret_that_is_too_short_to_be_told_from_text_is_refused() -> None:
    with pytest.raises(ValueError, match="secret 'pin' has 4 bytes: below 8"):
        Redactor({"pin": "1234"})


def test_the_longer_of_two_secrets_is_replaced_first() -> None:
    redactor = Redactor({"short": "password", "long": "password-and-more"})

    assert redactor.clean(b"password-and-more password") == b"[secret long] [secret short]"
