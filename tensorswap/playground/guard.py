"""The guard before every request: this machine only, this page only, and only with the token.

A page of another site can send requests to this machine, and can give its own name the address of this machine. So the
Host must be one that only this machine answers to, an Origin must be this page's own, and a token that no other page
knows comes with each request: in the address of the page, and in a header of what the page asks.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

TOKEN = "x-tensorswap-token"
OPEN = "/assets/"  # files that are in every installation
POLICY = (  # the editor sets the width of a tab in an attribute, which is why those may hold style
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
REFUSED = {
    "host": "This page is for the machine that it runs on: open it at the address that the command printed.\n",
    "origin": "Another page asked. Only the playground's own page may.\n",
    "token": "The token is missing or wrong. Open the whole address that `tensorswap playground` printed. "
    "To open a link, run: tensorswap playground 'LINK'\n",
}


@dataclass(frozen=True)
class Guard:
    """Lets through what may pass, and sends the headers that a browser needs to guard the page further."""

    inner: Application
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the playground speaks HTTP only, not {scope['type']}")
        scope["nonce"] = secrets.token_urlsafe(16)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                policy = POLICY.format(nonce=scope["nonce"])
                more = {**HEADERS, "content-security-policy": policy}
                message = {**message, "headers": [*message["headers"], *_encoded(more)]}
            await send(message)

        wrong = self.wrong(scope)
        if wrong is None:
            await self.inner(scope, receive, guarded)
            return
        text = REFUSED[wrong].encode()
        headers = _encoded({"content-type": "text/plain; charset=utf-8", "content-length": str(len(text))})
        await guarded({"type": "http.response.start", "status": 403, "headers": headers})
        await guarded({"type": "http.response.body", "body": text})

    def wrong(self, scope: Scope) -> str | None:
        """What is wrong with a request, if something is."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        if len(headers.get("host", ())) != 1 or headers["host"][0] not in hosts:
            return "host"
        if any(origin != f"http://{headers['host'][0]}" for origin in headers.get("origin", ())):
            return "origin"
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", ())):
            return "origin" if scope["path"] != "/" else self.wrong_token(scope, headers)
        return self.wrong_token(scope, headers)

    def wrong_token(self, scope: Scope, headers: dict[str, list[str]]) -> str | None:
        if scope["path"].startswith(OPEN):
            return None
        if scope["path"] == "/":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        else:
            given = headers.get(TOKEN, [""])[0]
        return None if secrets.compare_digest(given.encode(), self.token.encode()) else "token"


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
